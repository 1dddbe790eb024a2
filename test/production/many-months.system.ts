import { openAttempt, recordAttempt } from '../../db/notifications/attempt';
import { newKeyRingText, newPartner, standings, storeStatus } from '../../testbed/notifications';
import { startOwnPostgres, type OwnPostgres } from '../../testbed/own-postgres';
import { migrateWithLogins } from '../../testbed/roles';
import { DELIVERED } from '../../testbed/values';
import { composeServices } from '../support/compose-file';
import { openDatabaseAt } from '../support/database';
import { makePastMonth, monthOf } from '../support/old-rows';

/** Those that follow an index, of 22 workers and four API processes (docs/operations/sizing.md). */
const SESSIONS = 22 * 5 + 4 * 7;
/** Notifications are kept for so long. */
const YEARS = 7;

/** As docker-compose.yml starts it, with less memory. */
function settings() {
  const given = composeServices()['postgres']?.command?.join(' ') ?? '';
  const most = (name: string) => new RegExp(`-c ${name}=(\\d+)`).exec(given)?.slice(1) ?? [];
  return Object.fromEntries(
    ['max_connections', 'max_locks_per_transaction'].flatMap((name) =>
      most(name).map((value) => [name, value]),
    ),
  );
}

let server: OwnPostgres;
afterAll(() => server.close());

test('in the seventh year every session, new after a failover, finds room for the locks of all months', async () => {
  server = await startOwnPostgres({ fsync: 'off', ...settings() });
  await migrateWithLogins(server.url);
  const database = openDatabaseAt(server.url, { poolSize: 4, statementTimeoutMs: 0 });
  for (let month = 1; month < YEARS * 12; month += 1)
    await makePastMonth(database, monthOf(31 + month * 30.4));
  const { partnerId } = await newPartner(database, newKeyRingText());
  const ids: string[] = [];
  while (ids.length < SESSIONS) ids.push((await storeStatus(database, { partnerId })).notificationId);
  await database.sql`update deliveries set state = 'started', started_at = service_now()`;
  const sessions = ids.map(() =>
    openDatabaseAt(server.url, { byIndex: true, poolSize: 1, statementTimeoutMs: 60_000 }),
  );
  await Promise.all(sessions.map(({ sql }) => sql`select 1`));
  await Promise.all(
    sessions.map(async ({ db }, at) => {
      const notificationId = ids[at] ?? '';
      const opened = await openAttempt(db, { notificationId, generation: 1 });
      if (opened.kind !== 'open') throw new Error(opened.kind);
      const { attemptNumber } = opened;
      await recordAttempt(db, { notificationId, attemptNumber }, { outcome: DELIVERED, address: null });
    }),
  );
  expect((await standings(database)).filter(({ state }) => state === 'delivered')).toHaveLength(SESSIONS);
  await Promise.all([database, ...sessions].map((one) => one.close()));
});
