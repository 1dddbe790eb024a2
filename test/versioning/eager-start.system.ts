import { randomBytes } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import type { google } from '@temporalio/proto';
import type { createActivities } from '../../activities';
import { watchBuild, type BuildWatch } from '../../worker/start-delivery';
import { temporalOrders } from '../../ops/temporal';
import { openWorkerSession, type WorkerSession } from '../../worker/session';
import { ensureSearchAttributes } from '../../runtime/temporal/namespace';
import { until } from '../../testbed/until';
import { deliveryOf, deploymentsOf, starterOf } from '../support/histories';
import { startTcpProxy } from '../support/tcp-proxy';
import { randomTaskQueue, sessionOptions, testTemporal } from '../support/temporal';

type Time = google.protobuf.ITimestamp;

const temporal = testTemporal();
/** Above what an answer is good for; a healthy connection repeats nothing. */
const SETTLE_MS = 6_000;
const deploymentName = `eager-${randomBytes(4).toString('hex')}`;
const taskQueue = randomTaskQueue();
interface Build {
  readonly session: WorkerSession;
  readonly watch: BuildWatch;
}
let one: Build;
let two: Build;
const orders = (settleMs: number, address = temporal.address, deadlineMs = 30_000) =>
  temporalOrders(
    { namespace: temporal.namespace, connection: { address } },
    { taskQueue, deployment: deploymentName },
    { settleMs, deadlineMs },
  );
/** What is looked at is who gets the first task; there is nothing to send. */
const nothing = { kind: 'over', status: 'superseded', reason: null } as const;
const activities = {
  sends: { sendAttempt: async () => nothing },
  records: { recordResult: async () => undefined, endDelivery: async () => undefined },
  local: { attemptAtOnce: async () => nothing },
} as unknown as ReturnType<typeof createActivities>;

async function openBuild(buildId: string): Promise<Build> {
  const build = { deploymentName, buildId };
  const options = { ...(await sessionOptions(temporal, taskQueue)), build };
  const session = await openWorkerSession(options, activities);
  const onError = (error: unknown) => {
    throw error;
  };
  const { client } = session;
  const watch = watchBuild({ client, taskQueue, build, monotonicMs: () => performance.now(), onError });
  return { session, watch };
}

beforeAll(async () => {
  await ensureSearchAttributes(temporal.env.connection, temporal.namespace);
  [one, two] = [await openBuild('one'), await openBuild('two')];
  await until(
    async () => (await orders(0).describeDeployment()).builds.length === 2,
    'both builds are known',
  );
}, 300_000);
afterAll(async () => {
  await Promise.all([one, two].map(({ watch }) => watch.stop()));
  await Promise.all([one, two].map(({ session }) => session.stop()));
});

let started = 0;
/** A start as the dispatcher of a build makes it. */
async function startFrom({ session, watch }: Build): Promise<WorkflowHandle> {
  started += 1;
  const notificationId = `ntf_${deploymentName}_${started}`;
  await starterOf(session.client, taskQueue, watch)(notificationId);
  return deliveryOf(temporal.client, notificationId);
}

/** By the server's clock, in milliseconds. */
const instant = (time: Time | null | undefined) => Number(time?.seconds) * 1_000 + Number(time?.nanos) / 1e6;
async function firstTaskOf(handle: WorkflowHandle) {
  await handle.result();
  const [first] = (await handle.fetchHistory()).events ?? [];
  return {
    startedAt: instant(first?.eventTime),
    eager: first?.workflowExecutionStartedEventAttributes?.eagerExecutionAccepted === true,
    build: (await deploymentsOf(handle))[0],
  };
}
async function currentSince(): Promise<number> {
  const { workerDeploymentInfo: info } = await temporal.client.workflowService.describeWorkerDeployment({
    namespace: temporal.namespace,
    deploymentName,
  });
  return instant(info?.routingConfig?.currentVersionChangedTime);
}

test('nothing starts eagerly before a build is current, then that build alone', async () => {
  expect([one, two].map(({ watch }) => [watch.current(), watch.eager()])).toEqual([
    [false, false],
    [false, false],
  ]);
  await orders(0).setCurrent('one');
  await until(() => one.watch.eager(), 'build one knows');
  expect(await firstTaskOf(await startFrom(one))).toMatchObject({ eager: true, build: 'one' });
  expect(await firstTaskOf(await startFrom(two))).toMatchObject({ eager: false, build: 'one' });
  expect(two.watch.current()).toBe(false);
});

test('while another build becomes current under load, no eager start lands on the one that was', async () => {
  const handles: WorkflowHandle[] = [];
  // The change may be announced, and heard of, before a busy machine has made many starts.
  await until(() => one.watch.eager(), 'build one knows');
  for (let each = 0; each < 10; each += 1) handles.push(await startFrom(one));
  let over = false;
  const changing = orders(SETTLE_MS)
    .setCurrent('two')
    .finally(() => (over = true));
  for (let after = 0; after < 20; after += over ? 1 : 0) {
    handles.push(await startFrom(one));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  await changing;
  const since = await currentSince();
  const tasks = await Promise.all(handles.map(firstTaskOf));
  const eager = tasks.filter((task) => task.eager);
  expect(eager.length).toBeGreaterThan(5);
  expect(eager.filter((task) => task.build !== 'one' || task.startedAt >= since)).toEqual([]);
  // While the server itself is changing over, it may still give a task to build one; not after it has said that it is done.
  const after = tasks.slice(-15);
  expect(after.filter((task) => task.startedAt < since || task.eager || task.build !== 'two')).toEqual([]);
  await until(() => two.watch.eager(), 'build two knows');
  expect(await firstTaskOf(await startFrom(two))).toMatchObject({ eager: true, build: 'two' });
  expect(one.watch.current()).toBe(false);
});

test('while a build ramps nothing starts eagerly, and afterwards it does again', async () => {
  await orders(0).ramp('one', 50);
  await until(() => !two.watch.eager(), 'build two knows');
  expect(await firstTaskOf(await startFrom(two))).toMatchObject({ eager: false });
  expect(await orders(0).describeDeployment()).toMatchObject({
    current: 'two',
    ramping: { buildId: 'one', percent: 50 },
  });
  await orders(0).setCurrent('two');
  await until(() => two.watch.eager(), 'build two knows');
});

test('a change that Temporal does not answer in time is asked for again', async () => {
  const proxy = await startTcpProxy({ port: Number(temporal.address.split(':')[1]) });
  try {
    // A busy machine has been seen to need more than two seconds for an answer.
    const [settleMs, deadlineMs] = [1_000, 6_000];
    const changing = orders(settleMs, `127.0.0.1:${proxy.port}`, deadlineMs).setCurrent('one');
    const announced = async () => (await orders(0).describeDeployment()).ramping?.buildId === 'one';
    await until(announced, 'the announcement');
    // Before the change itself, which then waits for longer than its deadline.
    proxy.freeze();
    await new Promise((resolve) => setTimeout(resolve, settleMs + deadlineMs + 1_000));
    proxy.unfreeze();
    await changing;
    expect(await orders(0).describeDeployment()).toMatchObject({ current: 'one', ramping: null });
  } finally {
    await proxy.close();
  }
});
