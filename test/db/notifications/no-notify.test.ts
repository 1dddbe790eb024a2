import { applicationEventText } from '../../../contracts/webhook-event';
import { applyOverdueEvents } from '../../../db/applications/lender-events';
import { createPartner } from '../../../db/catalogue/partners';
import { cancelNotification, endNotification, recordAttempt } from '../../../db/notifications/attempt';
import { claimDue, giveBack, markStarted } from '../../../db/notifications/claim';
import { recoverForPartner } from '../../../db/notifications/recovery';
import { releaseHeld } from '../../../db/notifications/hold';
import { resendForPartner } from '../../../db/notifications/resend';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { openApplication, storeQuote, tell } from '../../support/applications';
import { openDatabaseAt } from '../../support/database';
import { until } from '../../support/delivery';
import {
  addEndpoint,
  newKeyRingText,
  openedAttempt,
  putInState,
  storeTest,
} from '../../support/notifications';
import { startOwnPostgres, type OwnPostgres } from '../../support/postgres-server';
import { migrateWithLogins } from '../../support/roles';
import { DELIVERED, FAILED } from '../../support/values';

const partnerId = 'P100001';
const queue = { partnerId, environment: 'sandbox' as const };
const LOCK_NOT_AVAILABLE = '55P03';

let server: OwnPostgres;
let database: ReturnType<typeof openDatabaseAt>;

beforeAll(async () => {
  server = await startOwnPostgres();
  await migrateWithLogins(server.url);
  const setup = openDatabaseAt(server.url, { poolSize: 2, statementTimeoutMs: 0 });
  await createPartner(setup.db, { partnerId, name: 'Example' });
  // Nothing of ours waits for a standby.
  await setup.sql.unsafe('alter database postgres set synchronous_commit = local');
  await setup.sql.unsafe(`alter system set synchronous_standby_names = 'none_exists'`);
  await setup.sql`select pg_reload_conf()`;
  await setup.close();
  database = openDatabaseAt(server.url, { poolSize: 8, statementTimeoutMs: 10_000 });
}, 60_000);

afterAll(async () => {
  await database?.close();
  await server?.close();
});

const waitsForStandby = async () => {
  const rows = await database.sql`select 1 from pg_stat_activity where wait_event = 'SyncRep'`;
  return rows.length > 0;
};

/** Has one transaction commit with a NOTIFY, without an end: it waits for a standby that does not exist, and holds the lock. */
async function holdNotifyLock(): Promise<() => Promise<void>> {
  const holder = openDatabaseAt(server.url, { poolSize: 1, statementTimeoutMs: 0 });
  let ended = false;
  const commits = (async () => {
    await holder.sql`set synchronous_commit = on`;
    // Until the server has read its new setting, these commit at once.
    while (!ended)
      await holder.sql`select pg_notify('held', ''), pg_logical_emit_message(true, 'held', 'written to the log')`;
  })().catch(() => undefined);
  await until(waitsForStandby, 'a commit that waits');
  return async () => {
    ended = true;
    await database.sql`select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`;
    await commits;
    await holder.close();
  };
}

test('triggers announce changes of keys, prices and endpoints only', async () => {
  const rows = await database.sql<{ table: string }[]>`
    select distinct c.relname as table from pg_trigger t
      join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
    where not t.tgisinternal and p.prosrc ~* 'notify' order by 1`;
  expect(rows.map(({ table }) => table)).toEqual([
    'api_keys',
    'merchant_partners',
    'merchants',
    'partners',
    'product_versions',
    'products',
    'webhook_endpoints',
  ]);
});

test('nothing that stores or records a quote, a notification or an attempt waits for a commit with a NOTIFY', async () => {
  const { db, sql } = database;
  await addEndpoint(database, {
    partnerId,
    url: 'https://hook.example/x',
    keyRing: newKeyRingText(),
  });
  // Else its first success is news, and recorded otherwise.
  await sql`update webhook_endpoints set last_success_at = service_now()`;
  const release = await holdNotifyLock();
  const claim = () => claimDue(sql, { limit: 64, slots: 16, leaseMs: 60_000, turn: null });
  const attempt = async (notificationId: string, outcome: DeliveryOutcome, retryInMs: number | null) => {
    const ref = await openedAttempt(database, { notificationId, generation: 1 });
    await recordAttempt(db, ref, { outcome, address: null }, null, retryInMs);
  };

  // Whoever waits for the lock fails (lock_timeout).
  try {
    await storeQuote(database, { partnerId });
    const tests: string[] = [];
    for (let nth = 0; nth < 3; nth += 1)
      tests.push((await storeTest({ db: sql }, { partnerId })).notificationId);
    const [delivered = '', retried = '', ended = ''] = tests;
    const { applicationId } = await openApplication(database, { partnerId });
    await tell(database, applicationId, 'submitted');
    await applyOverdueEvents(db, applicationId, applicationEventText);
    const { claimed } = await claim();
    expect(claimed.map(({ notificationId }) => notificationId)).toEqual(expect.arrayContaining(tests));
    await giveBack(db, claimed, 0);
    await markStarted(db, (await claim()).claimed);
    await attempt(delivered, DELIVERED, null);
    await attempt(retried, FAILED, 5_000);
    const end = { state: 'failed', reason: 'exhausted' } as const;
    await endNotification(db, { notificationId: ended, generation: 1 }, end);

    // Of an application: the first fails and puts the second off, which is due again when the first is delivered.
    const events = await sql<{ id: string }[]>`
      select notification_id as id from notifications_now where application_id = ${applicationId} order by sequence`;
    const [created = '', submitted = ''] = events.map(({ id }) => id);
    await attempt(created, FAILED, 0);
    await attempt(created, DELIVERED, null);
    await db.transaction((tx) => cancelNotification(tx, submitted, 1));
    const by = { owner: queue, keyId: 'key_test' };
    const resent = await resendForPartner(db, created, by);
    expect(resent.eventId).toMatch(/^evt_/);
    const span = { since: new Date(Date.now() - 86_400_000), until: new Date(), dryRun: false };
    const recovery = await recoverForPartner(db, { ...by, ...span });
    expect(recovery.recoveryId).toMatch(/^rcv_/);
    await putInState({ sql }, submitted, 'held');
    expect(await releaseHeld(db, queue, { limit: 10 })).toBe(1);

    // The lock was held all the time, and whoever sends a NOTIFY waits for it.
    expect(await waitsForStandby()).toBe(true);
    const another = sql.begin(async (tx) => {
      await tx`set local lock_timeout = '200ms'`;
      await tx`select pg_notify('other', '')`;
    });
    await expect(another).rejects.toMatchObject({ code: LOCK_NOT_AVAILABLE });
  } finally {
    await release();
  }
}, 120_000);
