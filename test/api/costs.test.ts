import { applicationEventText, testEvent } from '../../contracts/webhook-event';
import { openPools, type ApiPools } from '../../api/pools';
import { apiQueries, type ApiQueries } from '../../api/queries';
import { createKeyUses } from '../../api/catalogue';
import { loadMerchant } from '../../db/catalogue/merchants';
import { findKeyByHash, hashKey, loadKeysOfPartner } from '../../db/keys';
import { lowestNotificationId } from '../../db/notifications/notification';
import { simulateApplication } from '../../db/applications/simulate';
import { insertQuotes } from '../../db/quotes/store';
import type { ApplicationState } from '../../domain/application-states';
import { newEventId, newNotificationId } from '../../runtime/ids';
import { newApplication, storeQuote } from '../support/applications';
import { useDatabase } from '../support/database';
import { storeMany } from '../support/many-rows';
import { addShop, SHOP } from '../support/merchants';
import { addEndpoint } from '../../testbed/notifications';
import { addPartner } from '../support/partner-events';
import { asRole } from '../../testbed/roles';

/**
 * What each statement that a call can cause reads of a partner with many rows, in every state. A statement
 * that the API's routes can reach has an entry here, or this does not compile. Far more rows than the bounds
 * show that none of them grows: the plans are the same for a million (`COST_ROWS=250000`, docs/operations/speed.md).
 */
const EACH = Number(process.env['COST_ROWS'] ?? 20_000);

type Pool = keyof ApiPools;
interface Cost {
  readonly pool: Pool;
  /** Most rows that are read, and most pages of 8 KiB, index pages included, by all statements of the call. */
  readonly rows: number;
  readonly pages: number;
  readonly call: (queries: ApiQueries) => Promise<unknown>;
}

const PARTNER_ID = 'P100001';
const OWNER = { partnerId: PARTNER_ID, environment: 'sandbox' } as const;
const SERVICE = { keyId: 'svk_x', lender: 'lender_a', environment: 'sandbox' } as const;
const RECOVERED = 'rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA';
const DAY_MS = 86_400_000;

const database = useDatabase({ statementTimeoutMs: 0 });
let pools: ReturnType<typeof openPools>;
let queries: ApiQueries;
/** Plans of what has run, one for each statement, those inside functions too. */
const plans: { readonly pool: Pool; readonly ms: number; readonly plan: Plan }[] = [];
let real = '';
let simulated = '';
let failed = '';
let toResend: string[] = [];
let quoteId = '';

interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly 'Shared Hit Blocks'?: number;
  readonly 'Shared Read Blocks'?: number;
  readonly Plans?: readonly Plan[];
}

beforeAll(async () => {
  const { sql } = database;
  await addPartner(database, PARTNER_ID);
  await addEndpoint(database, OWNER);
  await addShop(database);
  await storeMany(database, { partnerId: PARTNER_ID, each: EACH });
  await sql`update notifications set recovery_id = ${RECOVERED} where application_id like 'app\\_failed\\_%'`;
  await sql`
    insert into recoveries (recovery_id, partner_id, environment, key_id, since, until, state, per_second, found, sent, runner)
    values (${RECOVERED}, ${PARTNER_ID}, 'sandbox', 'key_x', now(), now(), 'done', 10, ${EACH}, ${EACH}, 'x')`;
  // Applications of the partner, a few of which have an event that waits.
  await sql`
    insert into credit_applications (application_id, lender, lender_reference, quote_id, partner_id, environment, merchant_id, loan_pence,
      deposit_pence, sequence, simulated)
    select 'app_' || lpad(g::text, 26, '0'), 'lender_a', 'R' || g, 'qte_' || g / 10, ${PARTNER_ID}, 'sandbox', 'M000001', 1, 0, 1,
      case when g % 2 = 0 then 1 + g % 10 end
    from generate_series(1, ${EACH}) g`;
  await sql`
    insert into lender_events (application_id, lender, environment, lender_event_id, status, occurred_at, verdict, state_after)
    select application_id, lender, environment, 'le_' || application_id, 'submitted', now(), 'not_applied', 'created' from credit_applications`;
  await sql`
    insert into change_log (actor, action, subject, details)
    select 'key_x', 'notifications.resend', notification_id, '{}' from notifications where end_state = 'failed' limit ${EACH}`;
  ({ quoteId } = await storeQuote(database, { partnerId: PARTNER_ID }));
  const some = await sql`
    select notification_id as id from notifications where end_state = 'failed' order by 1 limit 3`;
  [failed = '', ...toResend] = some.map(({ id }) => String(id));

  const name = new URL(database.url).pathname.slice(1);
  for (const [setting, value] of [
    ['session_preload_libraries', 'auto_explain'],
    ['auto_explain.log_min_duration', '0'],
    ['auto_explain.log_analyze', 'on'],
    ['auto_explain.log_buffers', 'on'],
    ['auto_explain.log_timing', 'off'],
    ['auto_explain.log_format', 'json'],
    ['auto_explain.log_nested_statements', 'on'],
    ['auto_explain.log_level', 'notice'],
  ])
    await sql.unsafe(`alter database ${name} set ${setting} = '${value}'`);
  const wanted = { url: asRole(database.url, 'api'), statementTimeoutMs: 60_000 };
  pools = openPools(
    {
      ...wanted,
      onNotice: (text, pool) => {
        const [, ms, json] = /^duration: ([\d.]+) ms\s+plan:\s*(\{.*\})\s*$/s.exec(text) ?? [];
        if (json !== undefined) plans.push({ pool, ms: Number(ms), plan: JSON.parse(json).Plan });
      },
    },
    10,
  );
  queries = apiQueries(pools, { DATABASE_TIMEOUT_MS: 60_000, LENDER_EVENT_WAIT_SECONDS: 600 }, null);
  const opened = await queries.createApplication(newApplication(quoteId, { service: SERVICE }));
  if (opened.kind !== 'created') throw new Error(opened.kind);
  real = opened.application.applicationId;
  const story = { creditProduct: null, story: [], ...PLAYER };
  const made = await simulateApplication(database.db, { ...story, quoteId }, applicationEventText);
  if (made.kind !== 'created') throw new Error(made.kind);
  simulated = made.application.applicationId;
}, 600_000);
afterAll(() => pools.close());

const page = (more: object = {}) => ({
  ...OWNER,
  fromId: 'ntf_',
  beforeId: lowestNotificationId(2 ** 48 - 1),
  limit: 100,
  ...more,
});
const span = () => ({
  owner: OWNER,
  keyId: 'key_x',
  since: new Date(Date.now() - 20 * DAY_MS),
  until: new Date(),
});
/** Who plays the lender. */
const PLAYER = { partnerId: PARTNER_ID, keyId: 'key_x', requestId: 'rq_x' };
const move = (status: ApplicationState) => ({
  applicationId: simulated,
  status,
  ...PLAYER,
});

const lenderEvent = (lenderEventId: string) => ({
  applicationId: real,
  lenderEventId,
  status: 'submitted' as const,
  occurredAt: new Date(),
  service: SERVICE,
  requestId: 'rq_x',
});

/** By the names of the statements that routes have. */
const COSTS: Readonly<Record<keyof ApiQueries, Cost>> = {
  storeTest: { pool: 'writes', rows: 100, pages: 1_000, call: (q) => q.storeTest(newTest()) },
  readProgress: { pool: 'writes', rows: 20, pages: 300, call: (q) => q.readProgress(failed, OWNER) },
  // With several filters 1,000 rows are read twice, and with none a hundred.
  listNotifications: {
    pool: 'reads',
    rows: 8_000,
    pages: 12_000,
    call: async (q) => {
      await q.listNotifications(page());
      await q.listNotifications(page({ status: 'held' }));
      await q.listNotifications(page({ status: 'failed', eventType: 'credit_application.signed' }));
      await q.listNotifications(page({ eventType: 'credit_application.signed' }));
      await q.listNotifications(page({ eventId: 'evt_1' }));
      await q.listNotifications(page({ applicationId: 'app_failed_1' }));
      await q.listNotifications(page({ merchantReference: 'order 7' }));
    },
  },
  findNotification: { pool: 'reads', rows: 120, pages: 100, call: (q) => q.findNotification(failed, OWNER) },
  cursorSecret: { pool: 'own', rows: 1, pages: 20, call: (q) => q.cursorSecret() },
  resendNotification: {
    pool: 'writes',
    rows: 100,
    pages: 500,
    call: (q) => q.resendNotification(toResend.pop() ?? '', { owner: OWNER, keyId: 'key_x' }),
  },
  countRecoverable: {
    pool: 'reads',
    rows: 25_100,
    pages: 60_000,
    call: (q) => q.countRecoverable(span()),
  },
  recoverNotifications: {
    pool: 'writes',
    rows: 25_200,
    pages: 60_000,
    call: async (q) => {
      await q.recoverNotifications(span());
      await database.sql`update recoveries set state = 'done' where state = 'running'`;
    },
  },
  // All that the recovery has sent; the answer is remembered for twenty times as long as it took.
  recoveryProgress: {
    pool: 'reads',
    rows: EACH + 100,
    pages: 4 * EACH,
    call: (q) => q.recoveryProgress(RECOVERED, OWNER),
  },
  findPartnerApplication: {
    pool: 'reads',
    rows: 100,
    pages: 200,
    call: (q) => q.findPartnerApplication(simulated, OWNER),
  },
  simulateApplication: {
    pool: 'writes',
    rows: 1_500,
    pages: 12_000,
    call: (q) =>
      q.simulateApplication({
        quoteId,
        creditProduct: null,
        story: ['submitted', 'accepted', 'signed'],
        ...PLAYER,
      }),
  },
  simulateEvent: { pool: 'writes', rows: 300, pages: 2_000, call: (q) => q.simulateEvent(move('submitted')) },
  webhookEndpoint: { pool: 'reads', rows: 10_100, pages: 40_000, call: (q) => q.webhookEndpoint(OWNER) },
  webhookKeys: { pool: 'reads', rows: 20, pages: 50, call: (q) => q.webhookKeys(OWNER) },
  findServiceKeys: { pool: 'own', rows: 10, pages: 50, call: (q) => q.findServiceKeys([hashKey('svc_x')]) },
  createApplication: {
    pool: 'own',
    rows: 300,
    pages: 2_000,
    call: (q) => q.createApplication(newApplication(quoteId, { service: SERVICE })),
  },
  warnOfCrowdedQuote: {
    pool: 'own',
    rows: 100,
    pages: 200,
    call: async (q) =>
      q.warnOfCrowdedQuote(
        (
          await database.sql`select quote_id as "quoteId", partner_id as "partnerId", environment, merchant_id as "merchantId", lender
          from credit_applications where application_id = ${real}`
        )[0] as never,
      ),
  },
  recordLenderEvent: {
    pool: 'own',
    rows: 300,
    pages: 2_000,
    call: (q) => q.recordLenderEvent(lenderEvent(`le_${newEventId(new Date())}`)),
  },
  findApplication: { pool: 'own', rows: 100, pages: 300, call: (q) => q.findApplication(real, SERVICE) },
  applicationExists: { pool: 'own', rows: 2, pages: 20, call: (q) => q.applicationExists(real, SERVICE) },
};

/** What a quote causes beside its insert, which happens when memory cannot answer. */
const OF_QUOTES: Readonly<Record<string, Cost>> = {
  'the insert of a quote': {
    pool: 'inserts',
    rows: 10,
    pages: 300,
    call: async () => insertQuotes(pools.inserts.sql, [await storeQuoteRow()]),
  },
  'a key': { pool: 'own', rows: 10, pages: 50, call: () => findKeyByHash(pools.own.sql, hashKey('sk_x')) },
  "a partner's keys": {
    pool: 'own',
    rows: 20,
    pages: 50,
    call: () => loadKeysOfPartner(pools.own.sql, PARTNER_ID),
  },
  'a merchant': { pool: 'own', rows: 100, pages: 200, call: () => loadMerchant(pools.own.sql, SHOP) },
  'the use of a key': {
    pool: 'own',
    rows: 20,
    pages: 100,
    call: async () => {
      const uses = createKeyUses(pools.own.sql);
      uses.used('key_x');
      await uses.write();
    },
  },
};

function newTest() {
  const at = new Date();
  const ids = { notificationId: newNotificationId(at), eventId: newEventId(at) };
  const event = testEvent({ eventId: ids.eventId, environment: 'sandbox', createdAt: at, lender: null });
  return {
    ...OWNER,
    ...ids,
    eventType: 'credit_application.test',
    body: JSON.stringify(event),
    requestId: 'rq_x',
  };
}

async function storeQuoteRow() {
  const { quoteId: _, ...row } = await storeQuote(database, { partnerId: PARTNER_ID });
  return { ...row, quoteId: `qte_${newNotificationId(new Date()).slice(4)}` };
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];
const rowsOf = (plan: Plan) =>
  nodesOf(plan)
    .filter((one) => one['Relation Name'] !== undefined && /Scan/.test(one['Node Type']))
    .reduce(
      (sum, one) => sum + one['Actual Loops'] * (one['Actual Rows'] + (one['Rows Removed by Filter'] ?? 0)),
      0,
    );
const pagesOf = (plan: Plan) => (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0);

const printed: string[] = [];
afterAll(() => {
  if (process.env['COST_ROWS']) process.stdout.write(`${printed.join('\n')}\n`);
});

async function expectWithinBound(name: string, cost: Cost): Promise<void> {
  plans.length = 0;
  await cost.call(queries);
  // Hints of an earlier call go out on their own, and read nothing.
  const used = plans
    .splice(0)
    .filter(({ plan }) => nodesOf(plan).some((one) => one['Relation Name'] !== undefined));
  const rows = used.reduce((sum, { plan }) => sum + rowsOf(plan), 0);
  const pages = used.reduce((sum, { plan }) => sum + pagesOf(plan), 0);
  const ms = used.reduce((sum, one) => sum + one.ms, 0);
  printed.push([name, cost.pool, used.length, rows, pages, ms.toFixed(1)].join(' | '));
  expect(used.length).toBeGreaterThan(0);
  expect(new Set(used.map(({ pool }) => pool))).toEqual(new Set([cost.pool]));
  expect({ rows: Math.max(rows, cost.rows), pages: Math.max(pages, cost.pages) }).toEqual({
    rows: cost.rows,
    pages: cost.pages,
  });
}

describe.each(['before', 'after'])('%s Postgres has counted the rows', (when) => {
  if (when === 'after') beforeAll(() => database.sql.unsafe('analyze'));

  test.each(Object.entries({ ...COSTS, ...OF_QUOTES }))('%s reads no more than its bound', expectWithinBound);
});

test('the progress of a recovery is read once for all that ask at the same time', async () => {
  // An answer that took long is remembered.
  const again = apiQueries(pools, { DATABASE_TIMEOUT_MS: 60_000, LENDER_EVENT_WAIT_SECONDS: 600 }, null);
  plans.length = 0;
  const asked = Array.from({ length: 20 }, () => again.recoveryProgress(RECOVERED, OWNER));
  expect(new Set((await Promise.all(asked)).map((one) => one?.resent))).toEqual(new Set([EACH]));
  expect(plans.filter(({ plan }) => rowsOf(plan) >= EACH)).toHaveLength(1);
});
