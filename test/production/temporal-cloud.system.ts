import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { temporal as protocol } from '@temporalio/proto';
import Long from 'long';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import { temporalOrders } from '../../ops/temporal';
import { readConfig } from '../../runtime/config/config';
import { ensureSearchAttributes } from '../../runtime/temporal/namespace';
import { temporalTarget } from '../../runtime/temporal/temporal-target';
import { connectAsOps, OTHER_DEPS, runWith } from '../ops/run';
import { openCrashScene, type CrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import { warmUp } from '../support/fast-path';
import { fileNeeds } from '../support/needs';
import { storeStatus, storeTest } from '../../testbed/notifications';
import { startProductionTemporal, type ProductionTemporal } from '../../testbed/production-temporal';
import { startNode } from '../../testbed/project-process';
import { startTemporalCloud, type TemporalCloud } from '../support/temporal-cloud';
import type { WorkerProcess } from '../support/worker-process';

fileNeeds('Go');

const { EventType } = protocol.api.enums.v1;
const BILLED = new Set<number>([
  EventType.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
  EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
  EventType.EVENT_TYPE_TIMER_STARTED,
  EventType.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES,
]);
const root = join(__dirname, '../..');
const NAMESPACE = 'quotes.a1b2c';
const KEY = 'key-of-the-service-account';
const APPLICATIONS = 12;
/** Actions a second: fewer than a busy machine needs for a burst of 36 deliveries, some 100 actions. */
const LIMIT = 8;
const UNLIMITED = 1_000_000;

interface Event {
  readonly sequence: number;
  readonly data: { readonly credit_application_id: string };
}
const ADD = `tcld namespace search-attributes add --namespace ${NAMESPACE}`;

let temporal: ProductionTemporal;
let client: Client;
let keyed: TemporalCloud;
let mutual: TemporalCloud;
let withKey: Record<string, string>;
let withCertificate: Record<string, string>;
let scene: CrashScene;
let worker: WorkerProcess;

beforeAll(async () => {
  temporal = await startProductionTemporal();
  await temporal.ready();
  keyed = await startTemporalCloud(temporal, NAMESPACE, KEY);
  mutual = await startTemporalCloud(temporal, NAMESPACE);
  const certificate = { ...temporal.environment, TEMPORAL_NAMESPACE: NAMESPACE };
  const { TEMPORAL_TLS_CLIENT_CERT_PATH: _cert, TEMPORAL_TLS_CLIENT_KEY_PATH: _key, ...others } = certificate;
  withKey = { ...others, TEMPORAL_ADDRESS: keyed.address, TEMPORAL_API_KEY: KEY };
  withCertificate = { ...certificate, TEMPORAL_ADDRESS: mutual.address };
  // Past the proxies, as Cloud's own console would do it.
  const connection = Connection.lazy(temporalTarget(readConfig(temporal.environment)).connection);
  client = new Client({ connection, namespace: NAMESPACE });
  const workflowExecutionRetentionPeriod = { seconds: Long.fromNumber(86_400) };
  await client.workflowService.registerNamespace({ namespace: NAMESPACE, workflowExecutionRetentionPeriod });
  scene = await openCrashScene({ temporal: { address: keyed.address, namespace: NAMESPACE, client } });
}, 1_200_000);
beforeEach(() => scene.reset());

afterAll(async () => {
  await scene?.close();
  await keyed?.close();
  await mutual?.close();
  await client?.connection.close();
  await temporal?.close();
});

/** What `ops status` says is wrong about Temporal, by these settings. */
async function statusSays(settings: Readonly<Record<string, string>>): Promise<string> {
  const orders = temporalOrders(temporalTarget(readConfig(settings)), {
    taskQueue: scene.taskQueue,
    deployment: 'd',
  });
  const deps = { ...OTHER_DEPS, connect: connectAsOps(scene.databaseUrl), temporal: async () => orders };
  const { problems } = (await runWith(deps, ['status', '--json'])).json() as { problems: string[] };
  return problems.filter((problem) => problem.startsWith('Temporal')).join('\n');
}

/** What the command of that name prints. */
async function prepare(environment: Readonly<Record<string, string>>): Promise<string> {
  const command = startNode(['--import', 'tsx', 'bin/prepare-temporal.ts'], { cwd: root, environment });
  await command.ended;
  return command.output();
}

test('the wrong key and another namespace are refused; readiness, ops status and prepare-temporal name the settings', async () => {
  const check =
    /Request unauthorized.*: check TEMPORAL_NAMESPACE .*, and TEMPORAL_API_KEY or the client certificate/;
  const wrongKey = { ...withKey, TEMPORAL_API_KEY: 'another' };
  const wrongNamespace = { ...withKey, TEMPORAL_NAMESPACE: 'other.a1b2c' };
  const refused = await scene.worker(wrongKey);
  await refused.unreadyFor('Request unauthorized');
  expect((await refused.readiness()).reason).toMatch(check);
  await refused.end('SIGTERM');
  for (const settings of [wrongKey, wrongNamespace]) {
    const said = await statusSays(settings);
    expect(said).toContain('(Request unauthorized.)');
    expect(said).toMatch(check);
  }
  expect(await prepare(wrongNamespace)).toMatch(check);
});

test('search attributes are missing: readiness, ops status and prepare-temporal give the command', async () => {
  worker = await scene.worker({ ...withKey, TEST_LADDER_SECONDS: '0,1' });
  await worker.unreadyFor(ADD);
  const command = ADD + SEARCH_ATTRIBUTES.map((name) => ` --search-attribute ${name}=Keyword`).join('');
  expect((await worker.readiness()).reason).toContain(command);
  expect(await statusSays(withKey)).toContain(command);
  expect(await prepare(withKey)).toContain(`failed (Request unauthorized.): namespace ${NAMESPACE}`);

  // As tcld does.
  await ensureSearchAttributes(client.connection, NAMESPACE);
  await worker.ready();
  expect(await statusSays(withKey)).toBe('');
  const asked = keyed.seen.calls.length;
  expect(await prepare(withKey)).toContain('are there');
  expect(keyed.seen.calls.slice(asked)).not.toContain('AddSearchAttributes');
});

/** Billable actions of a delivery by its history, without retries after our own faults. */
async function actionsOf(notificationId: string): Promise<number> {
  const handle = deliveryOf(client, notificationId);
  await handle.result();
  const { events } = await handle.fetchHistory();
  // All markers of a workflow task are one action.
  const marked = (events ?? []).flatMap(({ markerRecordedEventAttributes: marker }) =>
    marker ? [String(marker.workflowTaskCompletedEventId)] : [],
  );
  return (events ?? []).filter(({ eventType }) => BILLED.has(eventType ?? 0)).length + new Set(marked).size;
}

test('above the limit of actions each of a burst is delivered, in order, and counted once', async () => {
  const { database, partnerId, receiver } = scene;
  const before = keyed.seen.throttled;
  keyed.limit(LIMIT);
  const applications = Array.from({ length: APPLICATIONS }, (_, nth) => `app_${nth}`);
  for (const sequence of [1, 2, 3])
    for (const applicationId of applications)
      await storeStatus(database, { partnerId, applicationId, sequence });
  const rows = await scene.ended(60_000);
  expect(keyed.seen.throttled).toBeGreaterThan(before);
  keyed.limit(UNLIMITED);
  expect(rows.map(({ attempts }) => attempts)).toEqual(rows.map(() => ['delivered']));
  const events = receiver.received.map(({ body }) => JSON.parse(body) as Event);
  for (const id of applications) {
    const own = events.filter(({ data }) => data.credit_application_id === id);
    expect(own.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
  }
  expect(await scene.counts()).toEqual([{ delivered: 3 * APPLICATIONS, failed: 0, reserved: 0 }]);
  await scene.expectInvariants({ kills: 0 });
  const billed = await Promise.all(rows.map(({ id }) => actionsOf(id)));
  // One that the fast path declines costs its marker beside the three.
  expect(Math.max(...billed)).toBeLessThanOrEqual(4);
  expect(billed.filter((actions) => actions <= 3).length).toBeGreaterThan(billed.length / 2);
  expect(worker.output()).not.toContain(KEY);
});

test('a delivery costs three actions, two on the fast path, and each further attempt two; a client certificate will do', async () => {
  const { database, partnerId, receiver } = scene;
  const cost = async (of = partnerId) => {
    const { notificationId } = await storeTest(database, { partnerId: of });
    await scene.ended();
    return actionsOf(notificationId);
  };
  const { actions } = keyed.seen;
  expect(await cost()).toBe(3);
  await until(() => keyed.seen.actions - actions === 3, 'the proxy has counted three');
  await scene.addPartner('P100002');
  const next = receiver.received.length;
  receiver.behave((nth) => (nth === next ? 503 : 200));
  // The first failure also changes a search attribute.
  expect(await cost('P100002')).toBe(3 + 1 + 2);
  await worker.end('SIGTERM');

  const fast = await scene.worker({ ...withCertificate, FAST_SLOTS: '8' });
  await fast.ready();
  await warmUp({ database, client }, partnerId);
  expect(await cost()).toBe(2);

  // All workers together may ask 30 times a second.
  const asked = () => mutual.seen.calls.filter((call) => call === 'CountWorkflowExecutions').length;
  const before = asked();
  await fast.readiness();
  expect(asked() - before).toBeLessThan(SEARCH_ATTRIBUTES.length);
});
