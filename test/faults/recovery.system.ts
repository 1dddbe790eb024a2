import { asRole } from '../support/roles';
import { putInState, statusBody } from '../support/notifications';
import { ulid } from 'ulid';
import { openCrashScene, type CrashScene } from '../support/crash-scene';
import { until } from '../support/delivery';
import { startNode } from '../support/project-process';
import { testTemporal } from '../support/temporal';

const EVENTS_EACH = 8;
/** First attempts under way to one endpoint at a time. */
const PLACES = 16;
const APPLICATIONS = 10;
const temporal = testTemporal();
let scene: CrashScene;

beforeAll(async () => {
  scene = await openCrashScene({ temporal, client: () => temporal.env.client });
}, 300_000);
afterAll(() => scene?.close());
beforeEach(() => scene.reset());

/** An event of an application, as the state machine stores it. */
async function store(application: string, sequence: number, state: 'failed' | 'held' | 'queued') {
  const id = `ntf_${ulid()}`;
  const eventId = `evt_${ulid()}`;
  const type = 'credit_application.accepted';
  const body = statusBody({ eventId, applicationId: application, sequence, status: 'accepted' });
  await scene.database.sql`
    insert into notifications ${scene.database.sql({
      notification_id: id,
      event_id: eventId,
      event_type: type,
      partner_id: scene.partnerId,
      environment: 'sandbox',
      application_id: application,
      sequence,
      body,
    })}`;
  await putInState(scene.database, id, state);
  return eventId;
}

const recover = (...more: string[]) =>
  startNode(['--import', 'tsx', 'bin/ops.ts', 'notifications', 'recover', ...more], {
    cwd: process.cwd(),
    environment: { DATABASE_URL: asRole(scene.databaseUrl, 'ops'), OPS_ACTOR: 'tester' },
  });
const generations = () => scene.database.sql<{ generation: number; priority: number }[]>`
  select generation, priority from notifications_now where application_id like 'app_old%' order by 1`;

test('a recovery killed with kill -9 and resumed sends each event once, in order, behind live events', async () => {
  const applications = Array.from({ length: APPLICATIONS }, (_, at) => `app_old${at}`);
  for (let sequence = 1; sequence <= EVENTS_EACH; sequence += 1)
    for (const one of applications) await store(one, sequence, sequence % 2 === 0 ? 'held' : 'failed');
  const total = APPLICATIONS * EVENTS_EACH;
  const resent = async () => (await generations()).filter(({ generation }) => generation === 2).length;

  const victim = recover('--partner', scene.partnerId, '--since', '1h', '--yes', '--per-second', '5');
  await until(async () => (await resent()) >= 8, 'some are sent again', 60_000);
  victim.child.kill('SIGKILL');
  await victim.ended;
  const [, recoveryId = ''] = /--resume (rcv_\w+)/.exec(victim.output()) ?? [];
  expect(await resent()).toBeLessThan(total);

  const resumed = recover('--resume', recoveryId, '--per-second', '200');
  expect(await resumed.ended).toBe(0);
  expect(resumed.stdout()).toContain(`${total} of ${total} sent, 0 passed over`);
  // Each was sent again by exactly one resend of the recovery, whoever did it.
  expect(await generations()).toEqual(Array.from({ length: total }, () => ({ generation: 2, priority: 1 })));
  const log = await scene.database.sql`
    select subject from change_log where details ->> 'recovery_id' = ${recoveryId}`;
  expect(new Set(log.map(({ subject }) => subject)).size).toBe(total);
  expect(log).toHaveLength(total);

  // One that is live comes last, and goes before what waits.
  const live = await store('app_live', 1, 'queued');
  const worker = await scene.worker();
  await scene.ended(120_000);
  const seen = scene.receiver.received.map(({ headers }) => String(headers['webhook-id']));
  expect(new Set(seen).size).toBe(total + 1);
  expect(seen).toHaveLength(total + 1);
  // It was taken with the first that go at once, of which any may arrive first.
  expect(seen.indexOf(live)).toBeLessThan(PLACES);
  const order = await scene.database.sql<{ event: string; application: string; sequence: number }[]>`
    select event_id as event, application_id as application, sequence from notifications_now`;
  for (const one of applications) {
    const own = order.filter(({ application }) => application === one);
    const at = own.toSorted((a, b) => a.sequence - b.sequence).map(({ event }) => seen.indexOf(event));
    expect(at).toEqual(at.toSorted((a, b) => a - b));
  }
  await scene.expectInvariants({ kills: 0 });
  await worker.end('SIGTERM');
}, 300_000);
