import { putInState, setServiceClock } from '../../../testbed/notifications';
import { createPartner } from '../../../db/catalogue/partners';
import { resendNotification } from '../../../db/notifications/resend';
import {
  applyRetentionStep,
  MONTHLY_KINDS,
  deleteBatch,
  dropMonth,
  clearPayloads,
} from '../../../db/retention/remove';
import { keepRetentionDays, readRetentionDays } from '../../../db/retention/days';
import { countExpired, begunMonths } from '../../../db/retention/count';
import { type RetentionDays, type RetentionKind } from '../../../domain/retention';
import { openDatabaseAt, openTestDatabase, type OpenTestDatabase } from '../../support/database';
import { makePastMonth, monthOf, storeOldNotification, storeOldQuote } from '../../support/old-rows';

const DAYS: RetentionDays = { payloads: 90, attempts: 400, notifications: 2_557, quotes: 1_000 };
/** Days ago, in a month of its own each: whole months lie between them and every limit. */
const [PAST_ALL, PAST_ATTEMPTS, PAST_PAYLOADS, RECENT] = [3_000, 500, 130, 10];
let database: OpenTestDatabase;

beforeEach(async () => {
  database = await openTestDatabase();
  await keepRetentionDays(database.db, { days: DAYS, shorten: true });
});
afterEach(() => database.close());

const step = (
  kind: RetentionKind,
  more: { batch?: number; enough?: () => boolean; cursor?: string } = {},
) => {
  const { enough = () => false, cursor = null, ...batch } = more;
  return applyRetentionStep(database.db, { kind, cursor }, { enough, ...batch });
};
const ids = async (table: 'quotes' | 'notifications' | 'delivery_attempts' | 'delivery_intervals') => {
  const column = table === 'quotes' ? 'quote_id' : 'notification_id';
  const rows = await database.sql.unsafe(`select ${column} as id from ${table} order by 1`);
  return rows.map(({ id }) => id as string);
};
const partitions = async () => {
  const rows =
    await database.sql`select relname::text as name from pg_class where relname ~ '_[0-9]{4}_[0-9]{2}$'`;
  return rows.map(({ name }) => name as string);
};
const payloads = async () => {
  const rows = await database.sql`
    select notification_id as id, concat_ws(' ', body, answer) as both from notifications join delivery_attempts using (notification_id)`;
  return Object.fromEntries(rows.map(({ id, both }) => [id, both as string]));
};
const log = () => database.sql`
  select actor, action, subject, details from change_log where action <> 'retention.days' order by change_id`;

test('a clock that is years ahead drops no month that has not begun', async () => {
  await storeOldQuote(database, RECENT);
  const before = await partitions();
  const ahead = before.filter((name) => name.startsWith('quotes_') && name > `quotes_${monthOf(0)}`);
  expect(ahead.length).toBeGreaterThan(5);
  await setServiceClock(database, '2090-01-01');
  const { quotes: kind } = MONTHLY_KINDS;
  const known = (await begunMonths(database.db, kind)).map(({ partition }) => partition);
  expect(ahead.filter((name) => known.includes(name))).toEqual([]);
  // Whoever asks the database itself is refused, too.
  const [name = ''] = ahead;
  const month = { partition: name, month: name.slice(-7), low: '', high: '' };
  expect(await dropMonth(database.db, kind, month)).toBe('stays');
  await step('attempts');
  await step('notifications');
  const others = before.filter((one) => !one.startsWith('quotes_'));
  expect(await partitions()).toEqual(expect.arrayContaining(others));
});

test('months whose last day is past its time go as a whole, with a line in the change log', async () => {
  for (const daysAgo of [PAST_ALL, PAST_ATTEMPTS]) await makePastMonth(database, monthOf(daysAgo));
  const old = await storeOldNotification(database, PAST_ALL);
  const middle = await storeOldNotification(database, PAST_ATTEMPTS);
  const recent = await storeOldNotification(database, RECENT);
  const quotes = [await storeOldQuote(database, PAST_ALL), await storeOldQuote(database, RECENT)];
  await database.sql`
    insert into delivery_intervals (notification_id, kind, began_at, ended_at)
    select id, 'held', now(), now() from unnest(${[old, middle, recent]}::text[]) id`;

  expect(await step('attempts')).toMatchObject({
    removed: 2,
    dropped: [`delivery_attempts_${monthOf(PAST_ALL)}`, `delivery_attempts_${monthOf(PAST_ATTEMPTS)}`],
    more: false,
    busy: [],
  });
  expect(await step('notifications')).toMatchObject({ dropped: [`notifications_${monthOf(PAST_ALL)}`] });
  expect(await step('quotes')).toMatchObject({ dropped: [`quotes_${monthOf(PAST_ALL)}`], removed: 1 });
  expect(await ids('delivery_attempts')).toEqual([recent]);
  expect(await ids('delivery_intervals')).toEqual([recent]);
  expect(await ids('notifications')).toEqual([middle, recent]);
  expect(await ids('quotes')).toEqual([quotes[1]]);
  expect(old).not.toBe(middle);
  expect(await log()).toContainEqual({
    actor: 'postgres',
    action: 'retention.drop',
    subject: `notifications_${monthOf(PAST_ALL)}`,
    details: { rows: 1 },
  });
});

test('rows without a month of their own go in batches, by the day', async () => {
  for (let times = 0; times < 5; times += 1) await storeOldQuote(database, DAYS.quotes + 1);
  const kept = await storeOldQuote(database, DAYS.quotes - 1);
  expect(await step('quotes', { batch: 2 })).toMatchObject({ removed: 5, dropped: [], more: false });
  expect(await ids('quotes')).toEqual([kept]);
  const line = { actor: 'postgres', action: 'retention.remove', subject: 'quotes' };
  const details = [2, 2, 1].map((rows) => ({ rows, older_than_days: DAYS.quotes }));
  expect(await log()).toEqual(details.map((one) => ({ ...line, details: one })));
});

test('what has not ended stays however old it is, with its attempts and its body; the rest of its month goes', async () => {
  await makePastMonth(database, monthOf(PAST_ALL));
  const staying = [];
  for (const state of ['queued', 'started', 'held'] as const)
    staying.push(await storeOldNotification(database, PAST_ALL, state));
  for (const state of ['delivered', 'failed', 'cancelled', 'expired'] as const)
    await storeOldNotification(database, PAST_ALL, state);
  for (const kind of ['payloads', 'attempts', 'notifications'] as const) await step(kind, { batch: 2 });
  expect(await ids('notifications')).toEqual(staying.toSorted());
  expect(await ids('delivery_attempts')).toEqual(staying.toSorted());
  expect(Object.values(await payloads())).toEqual(Array.from({ length: 3 }, () => '{"a":1} ok'));
  expect(await partitions()).toContain(`notifications_${monthOf(PAST_ALL)}`);

  for (const id of staying) await putInState(database, id, 'delivered');
  for (const kind of ['attempts', 'notifications'] as const) await step(kind);
  expect(await partitions()).not.toContain(`notifications_${monthOf(PAST_ALL)}`);
});

/** Ids of these days begin with `qte_01CH`, and Czech sorts CH after H. */
const CZECH = Math.floor((Date.now() - Date.UTC(2018, 5, 30)) / 86_400_000);

test.each([
  ['by code point', undefined, PAST_ALL],
  ['as Czech does', 'cs-CZ', CZECH],
])(
  'the quote of an application that has not ended stays, in a database that sorts %s',
  async (_as, locale, daysAgo) => {
    if (locale !== undefined) {
      await database.close();
      database = await openTestDatabase({}, locale);
      await keepRetentionDays(database.db, { days: DAYS, shorten: true });
    }
    await makePastMonth(database, monthOf(daysAgo));
    const ofOpen = await storeOldQuote(database, daysAgo);
    await storeOldQuote(database, daysAgo);
    await createPartner(database.db, { partnerId: 'P100001', name: 'Example' });
    await database.sql`
    insert into credit_applications (application_id, lender, lender_reference, quote_id, partner_id, environment, merchant_id,
      loan_pence, deposit_pence, state)
    select 'app_x', lender, 'A1B2C3D4', ${ofOpen}, 'P100001', 'live', 'M123456', 100000, 0, 'signed'
    from lenders order by lender limit 1`;
    expect((await countExpired(database.db)).at(-1)).toMatchObject({ rows: 1, staying: 1, months: [] });
    expect(await step('quotes')).toMatchObject({ removed: 1, dropped: [] });
    expect(await ids('quotes')).toEqual([ofOpen]);
    await database.sql`update credit_applications set state = 'completed'`;
    expect(await step('quotes')).toMatchObject({ removed: 1, dropped: [`quotes_${monthOf(daysAgo)}`] });
  },
);

test('payloads are emptied by the day and their rows stay; what lost its body cannot be sent again', async () => {
  const past = await storeOldNotification(database, PAST_PAYLOADS);
  const open = await storeOldNotification(database, PAST_PAYLOADS, 'held');
  const later = await storeOldNotification(database, DAYS.payloads + 1, 'failed');
  const kept = await storeOldNotification(database, DAYS.payloads - 1);
  expect(await step('payloads', { batch: 1 })).toMatchObject({ removed: 2, more: false });
  expect(await payloads()).toEqual({ [past]: '', [open]: '{"a":1} ok', [later]: '', [kept]: '{"a":1} ok' });
  await expect(resendNotification(database.db, later)).rejects.toThrow('its body was removed');
  // The mark has waited for the one that had not ended.
  await putInState(database, open, 'expired');
  expect(await step('payloads', { batch: 1 })).toMatchObject({ removed: 1 });
  expect((await payloads())[open]).toBe('');
  expect(await step('payloads')).toMatchObject({ removed: 0 });
});

test('a step that had enough says where the next one goes on', async () => {
  for (let times = 0; times < 3; times += 1) await storeOldNotification(database, PAST_PAYLOADS);
  const first = await step('payloads', { batch: 1, enough: () => true });
  expect(first).toMatchObject({ removed: 1, more: true });
  const next = { batch: 2, cursor: first.cursor ?? '' };
  expect(await step('payloads', next)).toMatchObject({ removed: 2, more: false });
});

test('a month in use is left for later after half a second, and nobody waits behind it for longer', async () => {
  await makePastMonth(database, monthOf(PAST_ALL));
  await storeOldQuote(database, PAST_ALL);
  const reader = await database.sql.reserve();
  await reader`begin`;
  await reader`select 1 from quotes`;
  const startedAt = performance.now();
  const inserted = storeOldQuote(database, 1).then(() => performance.now() - startedAt);
  const [dropping, insertMs] = await Promise.all([step('quotes'), inserted]);
  expect(dropping).toMatchObject({ removed: 0, dropped: [], busy: [`quotes_${monthOf(PAST_ALL)}`] });
  expect(insertMs).toBeLessThan(2_000);
  await reader`commit`;
  reader.release();
  expect(await step('quotes')).toMatchObject({ removed: 1, busy: [] });
});

test.each([0, 30])('%d days are refused, and nothing younger than 31 days would go', async (days) => {
  const { sql, db } = database;
  const forged = { ...DAYS, quotes: days };
  await expect(keepRetentionDays(db, { days: forged, shorten: true })).rejects.toMatchObject({
    cause: { constraint_name: 'retention_days_least' },
  });
  await sql`alter table retention_days drop constraint retention_days_least`;
  await sql`update retention_days set days = ${days}`;
  const month = monthOf(RECENT);
  await makePastMonth(database, month);
  await storeOldNotification(database, RECENT);
  const { attempts: kind } = MONTHLY_KINDS;
  expect(await deleteBatch(db, kind, `delivery_attempts_${month}`, 100)).toEqual({ ids: 0, rows: 0 });
  expect(await clearPayloads(db, { limit: 100, cursor: '' })).toMatchObject({ cleared: 0 });
  expect(await begunMonths(db, kind)).toEqual([]);
  expect(await log()).toEqual([]);
});

test('days are raised by any migration, and lowered only where it is said so, each with its line in the change log', async () => {
  const { db } = database;
  const shorter = { ...DAYS, quotes: 800, attempts: 300 };
  await expect(
    keepRetentionDays(db, { days: { ...shorter, notifications: 3_000 }, shorten: false }),
  ).rejects.toThrow(
    'RETENTION_ATTEMPTS_DAYS is 300, and 400 days are kept; RETENTION_QUOTES_DAYS is 800, and 1000 days are kept. The days were not changed',
  );
  expect(await readRetentionDays(db)).toEqual(DAYS);
  await keepRetentionDays(db, { days: { ...DAYS, quotes: 3_000 }, shorten: false });
  await keepRetentionDays(db, { days: shorter, shorten: true });
  await keepRetentionDays(db, { days: shorter, shorten: false });
  expect(await readRetentionDays(db)).toEqual(shorter);
  const by = { actor: 'migrate', login: 'postgres' };
  expect(
    await database.sql`select actor, login, subject, details from change_log
      where action = 'retention.days' and change_id > 1 order by change_id`,
  ).toEqual([
    { ...by, subject: 'quotes', details: { days: 3_000, before: 1_000 } },
    { ...by, subject: 'attempts', details: { days: 300, before: 400 } },
    { ...by, subject: 'quotes', details: { days: 800, before: 3_000 } },
  ]);
});

test('a false cursor moves no mark: what it skipped is emptied by the next run', async () => {
  const skipped = await storeOldNotification(database, PAST_PAYLOADS);
  const last = await storeOldNotification(database, DAYS.payloads + 1);
  expect(await step('payloads', { cursor: skipped })).toMatchObject({ removed: 1 });
  expect(await database.sql`select 1 from retention_marks`).toHaveLength(0);
  expect(await step('payloads')).toMatchObject({ removed: 1 });
  expect(await database.sql`select done_up_to from retention_marks`).toEqual([{ done_up_to: last }]);
});

test('a month whose name says that it is old, and whose rows do not, stays', async () => {
  const month = monthOf(PAST_ALL);
  await makePastMonth(database, monthOf(60));
  await database.sql.unsafe(`alter table quotes_${monthOf(60)} rename to quotes_${month}`);
  const kept = await storeOldQuote(database, 60);
  expect(await step('quotes')).toMatchObject({ removed: 0, dropped: [], busy: [] });
  expect(await ids('quotes')).toEqual([kept]);
});

test('a month that changes between its count and its lock is counted again before it goes', async () => {
  await makePastMonth(database, monthOf(PAST_ALL));
  await storeOldQuote(database, PAST_ALL);
  const partition = `quotes_${monthOf(PAST_ALL)}`;
  const other = openDatabaseAt(database.url);
  await other.sql`begin`;
  await storeOldQuote(other, PAST_ALL);
  const dropping = step('quotes');
  // Other databases of the server have waits of their own.
  const waits = () =>
    database.sql`select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  while ((await waits()).count === 0);
  await other.sql`commit`;
  expect(await dropping).toMatchObject({ removed: 0, dropped: [], busy: [partition] });
  expect(await step('quotes')).toMatchObject({ removed: 2, dropped: [partition] });
  await other.close();
});
