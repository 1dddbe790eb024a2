import { once } from 'node:events';
import { lstat, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { Connection } from '@temporalio/client';
import { Agent, request } from 'undici';
import type { Delivery } from '../../dev/shop/webhooks';
import type { StackInfo } from '../../dev/stack';
import { freePort, stackPorts } from '../../dev/ports';
import { allProcesses, argumentsOf, childrenOf, isRunning, signal } from '../../dev/processes';
import { findTemporal, startTemporal } from '../../dev/temporal';
import { missingSearchAttributes } from '../../runtime/temporal/namespace';
import { until } from '../../testbed/until';
import { emitStackLogs } from '../../testbed/emitted';
import { withTemporal } from '../../testbed/own-temporal';
import { stackEnvironment } from '../support/stack-environment';
import { startNode, type ProjectProcess } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { fileNeeds } from '../support/needs';

fileNeeds('Temporal');

// Whole stacks come and go here, on machines that may be busy.
jest.setTimeout(300_000);

const project = join(__dirname, '..', '..');
const UP = /Ctrl-C stops everything/;
const WEBHOOKS_WORK = /Webhooks work now\. Temporal: (\S+)/;

const directory = runDirectory('stack with blanks');
let environment: Record<string, string>;
const dataDir = join(directory, 'data dir');
const stackFile = () => join(dataDir, 'stack.json');

beforeAll(async () => {
  environment = await stackEnvironment(dataDir);
  // On a new machine that takes minutes, which no single start below should.
  await findTemporal();
}, 1_200_000);

afterAll(async () => {
  for (const pid of await ours()) signal(pid, 'SIGKILL');
  emitStackLogs(dataDir);
});

/** The last argument means nothing to it; by it the run's watchdog and `ours` find the process. */
function start(settings: Record<string, string> = {}): ProjectProcess {
  return startNode(['--import', 'tsx', 'bin/start.ts', directory], {
    cwd: project,
    environment: { ...environment, ...settings },
    channel: true,
  });
}

/** Where every file is made readable and writable for everybody unless a program says otherwise. */
function startOpenly(): ProjectProcess {
  const before = process.umask(0);
  try {
    return start();
  } finally {
    process.umask(before);
  }
}

/** Modes of a folder and all below it, in octal, each once. Files that go while it looks are left out. */
async function modesIn(folder: string): Promise<{ files: string[]; folders: string[] }> {
  const found = { files: new Set<string>(), folders: new Set<string>() };
  const look = async (path: string): Promise<void> => {
    const entry = await lstat(path).catch(() => undefined);
    if (entry === undefined) return;
    const isFolder = entry.isDirectory();
    (isFolder ? found.folders : found.files).add((entry.mode & 0o777).toString(8));
    if (isFolder) for (const name of await readdir(path).catch(() => [])) await look(join(path, name));
  };
  await look(folder);
  return { files: [...found.files], folders: [...found.folders] };
}

/** Everything that runs on this test's directory. */
async function ours(): Promise<number[]> {
  const pids = await allProcesses();
  const commands = await Promise.all(pids.map(async (pid) => (await argumentsOf(pid)).join(' ')));
  return pids.filter((_, at) => commands[at]?.includes(directory));
}

async function ourProcess(name: 'postgres' | 'temporal'): Promise<number> {
  for (const pid of await ours()) if (basename((await argumentsOf(pid))[0] ?? '') === name) return pid;
  throw new Error(`no ${name} runs on ${directory}`);
}

async function readStack(): Promise<StackInfo> {
  return JSON.parse(await readFile(stackFile(), 'utf8')) as StackInfo;
}

/** A call with the sandbox key that trusts the development authority, as the printed curl makes it. */
async function call(method: 'GET' | 'POST', url: string, body?: object) {
  const { apiKeys, caFile } = await readStack();
  const dispatcher = new Agent({ connect: { ca: await readFile(caFile, 'utf8') } });
  const key = { authorization: `Bearer ${apiKeys.test}` };
  const sent = body && {
    headers: { ...key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  };
  const answer = await request(url, { method, dispatcher, headers: key, ...sent });
  const text = await answer.body.text();
  await dispatcher.close();
  return { status: answer.statusCode, text };
}

async function quote(): Promise<number> {
  const { apiUrl, partnerId, merchants } = await readStack();
  const page = 'https://shop.example/finance';
  const basket = { merchant_id: merchants[0]?.id, loan_amount: '1000.00', merchant_finance_url: page };
  return (await call('POST', `${apiUrl}/v1/finance-quote`, { partner_id: partnerId, ...basket })).status;
}

/** What the demo partner got, the newest first. */
async function deliveries(): Promise<readonly Delivery[]> {
  const { text } = await call('GET', `${(await readStack()).receiverUrl}/deliveries`);
  return (JSON.parse(text) as { deliveries: Delivery[] }).deliveries;
}

/** What a test notification says of its delivery, and what the demo partner got. */
async function deliverTest(): Promise<{ status: number; answer: unknown; got: unknown }> {
  const { status, text } = await call('POST', `${(await readStack()).apiUrl}/v1/notifications/test`);
  return { status, answer: (JSON.parse(text) as { data: unknown }).data, got: (await deliveries())[0] };
}

let stack: ProjectProcess;

test('starts on nothing, and says so when started twice', async () => {
  stack = startOpenly();
  await stack.waitFor(UP, 60_000);
  expect(stack.output()).toMatch(/\[1\/\d\] Postgres.*\] Demo shop.*\] API/s);
  expect(stack.output()).toMatch(/\[(\d)\/\1\] \w+ \.\.\. \d+\.\d s/);
  expect(await quote()).toBe(200);
  const { apiUrl, caFile } = await readStack();
  expect(stack.output()).toContain(`CURL_CA_BUNDLE='${caFile}'`);
  await stack.waitFor(WEBHOOKS_WORK, 60_000);
  // Passwords, keys, certificates, logs, claims, and what Postgres and Temporal write.
  expect(await modesIn(dataDir)).toEqual({ files: ['600'], folders: ['700'] });

  const { temporalUiUrl, shopUrl, internalUrl } = await readStack();
  expect(WEBHOOKS_WORK.exec(stack.output())?.[1]).toBe(temporalUiUrl);
  expect((await fetch(temporalUiUrl ?? '')).status).toBe(200);
  // Names that another site has made lead here.
  for (const at of [`${temporalUiUrl}/`, `${internalUrl}/metrics`])
    expect((await request(at, { headers: { host: 'evil.example' } })).statusCode).toBeGreaterThanOrEqual(400);
  expect(stack.output()).toContain(`${shopUrl}/developer`);
  expect((await call('GET', `${shopUrl}/developer`)).text).toContain('<h1>Behind the shop</h1>');

  expect(await deliverTest()).toMatchObject({
    status: 200,
    answer: { status: 'delivered' },
    got: { verified: true, eventType: 'credit_application.test', answered: 200 },
  });

  const second = start();
  expect(await second.ended).toBe(1);
  expect(second.output()).toMatch(new RegExp(`already runs .*${apiUrl}, process ${stack.pid}\\.`));
});

test('recovers after kill -9, with the same keys and data', async () => {
  const before = await readStack();
  const workflowId = 'before-the-kill';
  const temporal = { address: before.temporalAddress ?? 'none' };
  await withTemporal(temporal, ({ workflow }) =>
    workflow.start('nobodyRunsIt', { workflowId, taskQueue: 'nobody-polls-it' }),
  );
  await stack.end('SIGKILL');
  expect(await ours()).not.toEqual([]);
  const draft = `${stackFile()}.${stack.pid}`;
  await writeFile(draft, 'half');

  stack = startOpenly();
  await stack.waitFor(WEBHOOKS_WORK, 60_000);
  expect(stack.output()).toMatch(/Postgres that an earlier run left behind/);
  expect(stack.output()).toMatch(/Temporal that an earlier run left behind/);
  await withTemporal(temporal, ({ workflow }) => workflow.getHandle(workflowId).describe());
  expect(stack.output()).not.toMatch(/creating a new database cluster/);
  expect(await readStack()).toEqual(before);
  await expect(stat(draft)).rejects.toThrow(/ENOENT/);
  expect(await quote()).toBe(200);
  expect(await deliverTest()).toMatchObject({ status: 200, got: { verified: true } });
});

const demo = (dataFolder: string) =>
  startNode(['--import', 'tsx', 'bin/demo.ts', directory], {
    cwd: project,
    environment: { DATA_DIR: dataFolder },
  });

/** Whatever reaches the receiver's port is listed; only its signature tells whose it is. */
async function postAsStranger(): Promise<void> {
  const { receiverUrl, caFile } = await readStack();
  const dispatcher = new Agent({ connect: { ca: await readFile(caFile, 'utf8') } });
  const created = '{"event_type":"credit_application.created","data":null}';
  for (const body of ['null', '7', '{"event_type":"x"}', created]) {
    const answer = await request(`${receiverUrl}/webhooks`, { method: 'POST', dispatcher, body });
    expect(answer.statusCode).toBe(401);
    await answer.body.dump();
  }
  await dispatcher.close();
}

test('the demo simulates three applications, and all arrives verified and in order', async () => {
  // A second run finds what the first one left, and what strangers have posted.
  for (let times = 0; times < 2; times += 1) {
    await postAsStranger();
    const run = demo(dataDir);
    const code = await run.ended;
    expect(run.output()).toContain('All arrived, verified, in order.');
    expect(code).toBe(0);
    const got = [
      ...run.output().matchAll(/receiver got +(\d+) +credit_application\.(\w+) +signature verified/g),
    ];
    expect(got.map(([, sequence, status]) => `${sequence} ${status}`).join(' ')).toBe(
      [
        '1 created 2 submitted 3 referred 4 accepted 5 signed 6 ready 7 activated 8 paid_out 9 completed',
        '1 created 2 submitted 3 accepted 4 signed 5 ready 6 activated 7 paid_out 8 completed 9 refunded',
        '1 created 2 submitted 3 declined',
      ].join(' '),
    );
  }
});

test('Ctrl-C leaves nothing behind, and the demo says what to do then', async () => {
  const { apiKeys } = await readStack();
  expect(await stack.end('SIGINT')).toBe(0);
  expect(await ours()).toEqual([]);
  expect(await modesIn(dataDir)).toEqual({ files: ['600'], folders: ['700'] });
  expect((await readStack()).apiKeys).toEqual(apiKeys);

  const gone = demo(dataDir);
  expect(await gone.ended).toBe(1);
  expect(gone.output()).toMatch(/^The stack is not running \(nobody answers/);
  const never = demo(join(directory, 'nothing'));
  expect(await never.ended).toBe(1);
  expect(never.output()).toMatch(/^The stack is not running .*npm start.*\n$/);
});

test('makes new keys when stack.json is lost', async () => {
  const before = await readStack();
  await writeFile(stackFile(), '{ half');
  const running = start();
  await running.waitFor(WEBHOOKS_WORK, 60_000);
  const after = await readStack();
  expect(after.databaseUrl).toBe(before.databaseUrl);
  expect(after.apiKeys.test).not.toBe(before.apiKeys.test);
  expect(await quote()).toBe(200);

  // Temporal dies: the stack says so and starts it again; what was asked for meanwhile is delivered.
  signal(await ourProcess('temporal'), 'SIGKILL');
  await running.waitFor(/Temporal has ended by itself/);
  expect(await deliverTest()).toMatchObject({ status: 202, answer: { status: 'queued' } });
  expect(await quote()).toBe(200);
  await running.waitFor(/Temporal is back/, 30_000);
  // Of this start, all of them verified.
  const verified = async () => (await deliveries()).filter((one) => one.verified).length;
  await until(async () => (await verified()) === 1, 'the delivery of the test', 30_000);

  // Postgres dies: the stack says so and ends.
  const postgres = await ourProcess('postgres');
  signal(postgres, 'SIGKILL');
  expect(await running.ended).toBe(1);
  expect(running.output()).toMatch(/Postgres has ended by itself/);
  expect(await ours()).toEqual([]);
});

test('names every port in use', async () => {
  const settings = Object.entries(environment)
    .filter(([name]) => name.endsWith('_PORT'))
    .flatMap(([name, port]) =>
      (name === 'STACK_PORT' ? Object.values(stackPorts(Number(port))) : [Number(port)]).map(
        (each) => [name, each] as const,
      ),
    );
  expect(settings).toHaveLength(6);
  const squatters = settings.map(([, port]) => createServer().listen(port, '127.0.0.1'));
  await Promise.all(squatters.map((squatter) => once(squatter, 'listening')));
  const refused = start();
  expect(await refused.ended).toBe(1);
  for (const [name, port] of settings) {
    expect(refused.output()).toContain(`Port ${port} is in use. Free it, or set ${name} to another port.`);
  }
  expect(await ours()).toEqual([]);
  await Promise.all(squatters.map((squatter) => new Promise((resolve) => squatter.close(resolve))));
});

test('uses a Temporal that it is given, and registers what it lacks there', async () => {
  const other = await startTemporal({
    executable: await findTemporal(),
    dataDir: join(directory, 'other temporal'),
    port: await freePort(),
    uiPort: null,
    sync: false,
  });
  const namespace = 'given';
  const connection = await Connection.connect({ address: other.address });
  await connection.workflowService.registerNamespace({
    namespace,
    workflowExecutionRetentionPeriod: { seconds: 86_400 as never },
  });
  const running = start({ TEMPORAL_ADDRESS: other.address, TEMPORAL_NAMESPACE: namespace });
  await running.waitFor(WEBHOOKS_WORK, 60_000);
  expect(await readStack()).toMatchObject({ temporalAddress: other.address, temporalUiUrl: null });
  expect(await missingSearchAttributes(connection, namespace)).toEqual([]);
  // As when bin/bootstrap.cjs is killed.
  running.child.disconnect();
  expect(await running.ended).toBe(0);
  expect(await ours()).toEqual([other.pid]);
  await connection.close();
  await other.stop();
});

test('can be stopped while it starts', async () => {
  const fresh = start({ DATA_DIR: join(directory, 'another') });
  await fresh.waitFor(/creating a new database cluster/);
  signal(fresh.pid, 'SIGINT');
  expect(await fresh.ended).toBe(0);
  expect(fresh.output()).not.toMatch(UP);
  expect(await ours()).toEqual([]);
});

test('answers quotes without Temporal, and says what is missing; a second Ctrl-C ends at once what does not stop', async () => {
  const running = start({ XDG_CACHE_HOME: join(project, 'package.json'), PATH: directory });
  await running.waitFor(UP, 60_000);
  await running.waitFor(/WARNING: no Temporal.*XDG_CACHE_HOME/s);
  expect(await readStack()).toMatchObject({ temporalAddress: null, temporalUiUrl: null });
  expect(await quote()).toBe(200);

  const postgres = await ourProcess('postgres');
  const frozen = [postgres, ...(await childrenOf(postgres))];
  for (const pid of frozen) signal(pid, 'SIGSTOP');
  signal(running.pid, 'SIGINT');
  await running.waitFor(/stopping/);
  expect(await isRunning(running.pid)).toBe(true);
  expect(await running.end('SIGINT')).toBe(130);
  for (const pid of frozen) signal(pid, 'SIGCONT');
});
