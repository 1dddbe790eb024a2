import postgres from 'postgres';
import { PROCESSES, type Process } from '../../../db/postgres/roles';
import { useDatabase } from '../../support/database';
import { asRole, NO_RIGHT, sqlStateOf } from '../../../testbed/roles';

/** What rows a process may insert: policies of row-level security, and checks. */
const database = useDatabase();
const logins = {} as Record<Process, postgres.Sql>;
beforeAll(() => {
  for (const process of PROCESSES)
    logins[process] = postgres(asRole(database.url, process), { max: 1, onnotice: () => undefined });
});
afterAll(() => Promise.all(Object.values(logins).map((one) => one.end())));

describe('a notification that a process inserts', () => {
  const ULID = '01KAF1Z4Q0T6M5S7Y2W3X4V5B';
  const application = `app_${ULID}6`;
  const status = {
    notification_id: `ntf_${ULID}7`,
    event_id: `evt_${ULID}7`,
    event_type: 'credit_application.accepted',
    partner_id: 'P100001',
    environment: 'live',
    application_id: application as string | null,
    sequence: 3 as number | null,
    merchant_reference: 'basket 2041' as string | null,
    body: '{}',
    request_id: 'x'.repeat(128) as string | null,
    trace_parent: null as string | null,
  };
  const none = { application_id: null, sequence: null, merchant_reference: null };
  const test_ = { ...status, ...none, event_type: 'credit_application.test' };
  /** Inserts it and takes it back. */
  const insert = (process: Process, row: Partial<typeof status>) =>
    logins[process]
      .begin(async (tx) => {
        await tx`insert into notifications ${tx(row)} returning notification_id`;
        throw new Error('done');
      })
      .catch((error: Partial<postgres.PostgresError>) => error.code ?? error.message);

  beforeAll(async () => {
    await database.sql`insert into partners (partner_id, name) values ('P100001', 'One'), ('P100002', 'Two')`;
    await database.sql`
      insert into credit_applications (application_id, lender, lender_reference, quote_id, partner_id, environment,
        merchant_id, merchant_reference, loan_pence, deposit_pence, state, sequence)
      values (${application}, 'lender_a', 'AB12CD34', ${`qte_${ULID}7`}, 'P100001', 'live',
        'M100001', 'basket 2041', 90000, 10000, 'accepted', 3)`;
  });

  test.each(['api', 'worker'] as const)('%s: what its application says', async (process) => {
    expect(await insert(process, status)).toBe('done');
  });
  test.each(['api', 'ops'] as const)('%s: a test', async (process) => {
    expect(await insert(process, test_)).toBe('done');
  });

  const REFUSED: readonly (readonly [string, object, Partial<typeof status>])[] = [
    ["another partner's application", status, { partner_id: 'P100002' }],
    ['the other environment', status, { environment: 'sandbox' }],
    ['no environment of ours', test_, { environment: 'production' }],
    ['an application that does not exist', status, { application_id: `app_${ULID}8` }],
    ['a sequence ahead', status, { sequence: 4 }],
    ['a sequence of before', status, { sequence: 2 }],
    ['a state in which the application is not', status, { event_type: 'credit_application.paid_out' }],
    ["another's reference", status, { merchant_reference: 'basket 1' }],
    ['no reference', status, { merchant_reference: null }],
    ['a type outside the list', test_, { event_type: 'credit_application.anything' }],
    ['a test with an application', status, { event_type: 'credit_application.test' }],
    ['a state without an application', test_, { event_type: 'credit_application.accepted' }],
    ['a partner id of no form', test_, { partner_id: 'P100001\n' }],
    ['a line break in its id', status, { notification_id: `ntf_${ULID}\n` }],
    ['a line break behind its id', status, { notification_id: `ntf_${ULID}7\n` }],
    ['a line break in the id of its event', status, { event_id: `evt_${ULID}7\nX: y` }],
    ['an id of another kind', status, { event_id: `ntf_${ULID}7` }],
    ['an id in lower case', status, { event_id: `evt_${ULID}7`.toLowerCase() }],
    ['a request id that no claim could carry', test_, { request_id: '"'.repeat(201) }],
    ['a trace that no claim could carry', test_, { trace_parent: '"'.repeat(201) }],
    ['a test with a reference', test_, { merchant_reference: 'basket 2041' }],
    ['a body of more than 20 KB', status, { body: 'é'.repeat(10_001) }],
  ];
  test.each(REFUSED)('is refused: %s', async (_, row, change) => {
    for (const process of PROCESSES) expect(await insert(process, { ...row, ...change })).toBe(NO_RIGHT);
  });

  test('is refused: a moment that no claim can reckon with', async () => {
    const statement = `
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, body, created_at)
      values ('ntf_${ULID}9', 'evt_${ULID}9', 'credit_application.test', 'P100001', 'live', '{}', 'infinity')`;
    for (const process of PROCESSES) expect(await sqlStateOf(logins[process], statement)).toBe(NO_RIGHT);
  });

  test('is refused though the login switches policies off', async () => {
    await logins.api`set row_security = off`;
    expect(await insert('api', test_)).toBe(NO_RIGHT);
    await logins.api`reset row_security`;
  });
});

describe('a delivery that a process inserts', () => {
  const BAD_ROW = '23514';
  const row = {
    notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B8',
    partner_id: 'P100001',
    environment: 'live',
    application_id: 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6' as string | null,
    sequence: 3 as number | null,
    test: false,
    delivered: false,
    generation: 1,
    attempts: 0,
  };
  const insert = (process: Process, changed: Partial<typeof row>) =>
    logins[process]
      .begin(async (tx) => {
        await tx`insert into deliveries ${tx({ ...row, ...changed })}`;
        throw new Error('done');
      })
      .catch((error: Partial<postgres.PostgresError>) => error.code ?? error.message);

  beforeAll(async () => {
    // It has ended, after twelve attempts in two generations.
    await database.sql`
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence,
        body, generation, attempts, end_state, end_reason, ended_at)
      values (${row.notification_id}, 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B8', 'credit_application.accepted', 'P100001', 'live',
        ${row.application_id}, 3, '{}', 2, 12, 'failed', 'exhausted', now())`;
  });
  afterEach(() => database.sql`delete from deliveries`);

  test.each(PROCESSES)('%s: a new one, and one that is sent again', async (process) => {
    expect(await insert(process, {})).toBe('done');
    expect(await insert(process, { generation: 3, attempts: 12 })).toBe('done');
    expect(await insert(process, { test: true, application_id: null, sequence: null })).toBe('done');
  });

  const REFUSED: readonly (readonly [string, string, Partial<typeof row>])[] = [
    ['attempts that the next one would overflow', NO_RIGHT, { attempts: 2_147_483_647 }],
    ['more attempts than were made', NO_RIGHT, { generation: 3, attempts: 13 }],
    ['a generation ahead', NO_RIGHT, { generation: 4, attempts: 12 }],
    ['a negative generation', NO_RIGHT, { generation: -1 }],
    ['a delivery that there was not', NO_RIGHT, { generation: 3, attempts: 12, delivered: true }],
    ['an id that Temporal starts no workflow of', NO_RIGHT, { notification_id: 'x'.repeat(1_500) }],
    ['an id of no form, whose moment a metric would read', NO_RIGHT, { notification_id: '!' }],
    ['a queue of no partner', NO_RIGHT, { partner_id: 'Q1' }],
    ['an application id that is too long', NO_RIGHT, { application_id: 'x'.repeat(65) }],
    ['a test with an application', NO_RIGHT, { test: true }],
    ['no test, and no application', NO_RIGHT, { application_id: null, sequence: null }],
    ['no environment of ours', BAD_ROW, { environment: 'nonsense' }],
  ];
  test.each(REFUSED)('is refused: %s', async (_, code, change) => {
    for (const process of PROCESSES) expect(await insert(process, change)).toBe(code);
  });

  test.each([
    ['a generation without a next one', 'update deliveries set generation = 1000000000'],
    ['an earlier generation', 'update deliveries set generation = 0'],
  ])('every process is refused: %s', async (_, statement) => {
    await database.sql`insert into deliveries ${database.sql(row)}`;
    for (const process of PROCESSES) expect(await sqlStateOf(logins[process], statement)).toBe(NO_RIGHT);
  });

  test.each([
    ['a moment that does not come', `update deliveries set due_at = 'infinity'`],
    ['a hold since ever', `update deliveries set state = 'held', held_at = '-infinity', hold_reason = 'x'`],
    [
      'a reason of any length',
      `update deliveries set state = 'held', held_at = now(), hold_reason = repeat('x', 201)`,
    ],
    ['a negative step', 'update deliveries set step = -1'],
    ['a quota whose sum would overflow', 'update monthly_counts set reserved = 2147483647'],
    [
      'a recovery without an end',
      `insert into recoveries (recovery_id, partner_id, environment, since, until, key_id, per_second, found, runner)
        values ('rcv_1', 'P100001', 'live', now(), now(), 'key_1', 0, 1, '')`,
    ],
    [
      'a recovery that no index counts',
      `insert into recoveries (recovery_id, partner_id, environment, since, until, key_id, per_second, found, runner)
        values ('rcv_1', 'P100001', null, now(), now(), 'key_1', 1, 1, '')`,
    ],
    ['a reason of an end of any length', `update notifications set end_reason = repeat('x', 201)`],
    [
      'an application that changes no more',
      `insert into credit_applications (application_id, lender, lender_reference, quote_id, partner_id, environment,
          merchant_id, loan_pence, deposit_pence, state_occurred_at)
        values ('app_1', 'lender_a', 'EF34GH56', 'qte_1', 'P100001', 'live', 'M100001', 1, 0, 'infinity')`,
    ],
    [
      "a lender's event that waits for ever",
      `insert into lender_events (application_id, lender, environment, lender_event_id, status, occurred_at, verdict,
          state_after, waits_until)
        values ('app_1', 'lender_a', 'live', '1', 'accepted', now(), 'waiting', 'created', 'infinity')`,
    ],
  ])('the API is refused: %s', async (_, statement) => {
    await database.sql`insert into deliveries ${database.sql(row)}`;
    await database.sql`
      insert into monthly_counts (partner_id, environment, month, event_type)
      values ('P100001', 'live', '2026-11-01', 'credit_application.test') on conflict do nothing`;
    expect(await sqlStateOf(logins.api, statement)).toBe(BAD_ROW);
  });
});
