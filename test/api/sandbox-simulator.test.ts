import { APPLICATION_STATES, STORIES, type Story } from '../../domain/application-states';
import { until } from '../../testbed/until';
import { useApi } from '../support/api';
import { eventsOf, storeQuote } from '../support/applications';
import { advanceServiceClock, setServiceClock } from '../../testbed/notifications';
import { refusal, type Answer, type CallOptions } from '../../testbed/http-call';
import { openDatabaseAt } from '../support/database';
import { internalClient, type InternalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { addPartner } from '../support/partner-events';

/** A partner plays the lender of applications of its own, in the sandbox only. */
const api = useApi();
let lender: InternalClient;
let stranger: string;
beforeAll(async () => {
  lender = await internalClient(api);
  stranger = (await addPartner(api.database, 'P200002')).test;
});

const PATH = '/v1/sandbox/credit-applications';
const quoted = async (fields: Record<string, unknown> = {}, options: CallOptions = {}) =>
  (await api.quote({ merchant_reference: 'basket 7', ...fields }, options)).body.data
    .service_quote_id as string;
const open = (body: unknown, options: CallOptions = {}) => api.call({ path: PATH, body, ...options });
const opened = async (fields: Record<string, unknown> = {}) =>
  (await open({ service_quote_id: await quoted(), ...fields })).body.data.credit_application_id as string;
const move = (id: string, status: string, options: CallOptions = {}) =>
  api.call({ path: `${PATH}/${id}/events`, body: { status }, ...options });
const states = ({ body }: Answer) => body.data.events.map((one: { status: string }) => one.status);
const stored = async () => {
  const rows = await api.database.sql`
    select (select count(*) from credit_applications) as applications, (select count(*) from lender_events) as events,
      (select count(*) from notifications) as notifications`;
  return JSON.stringify(rows);
};

test('a simulated application is opened from a quote, answered as it is read, and told as any other', async () => {
  const quoteId = await quoted();
  const answer = await open({ service_quote_id: quoteId });
  expect(answer).toMatchObject({
    status: 201,
    body: {
      success: true,
      data: {
        service_quote_id: quoteId,
        merchant_reference: 'basket 7',
        merchant_id: 'M000001',
        lender: 'test_lender_a',
        credit_product: '12 months at 9.9% APR',
        status: 'created',
        events: [{ sequence: 1, status: 'created', previous_status: null }],
      },
    },
  });
  const id = answer.body.data.credit_application_id as string;
  const moved = await move(id, 'submitted');
  expect(moved.status).toBe(200);
  expect(states(moved)).toEqual(['created', 'submitted']);
  expect((await api.get(`/v1/credit-applications/${id}`)).body).toEqual(moved.body);
  expect(await eventsOf(api.database, id)).toMatchObject([
    { event_type: 'credit_application.created', environment: 'sandbox', sequence: 1 },
    { event_type: 'credit_application.submitted', sequence: 2, data: { previous_status: 'created' } },
  ]);
  const listed = await api.get(`/v1/notifications?credit_application_id=${id}`);
  expect(listed.body.data.notifications).toHaveLength(2);
});

test.each([
  ['M000001', '10 months interest-free', 'test_lender_b', /^\d{7}$/],
  ['M000002', '12 months at 9.9% APR', 'test_lender_a', /^[A-Za-z0-9]{8}$/],
  [SHOP, '10 months interest-free', 'lender_b', /^\d{7}$/],
])(
  'a product of %s, "%s", is of its own lender, with a reference of its form',
  async (merchantId, product, key, form) => {
    const quoteId = await quoted({ merchant_id: merchantId });
    const { body } = await open({ service_quote_id: quoteId, credit_product: product });
    expect(body.data).toMatchObject({ credit_product: product, lender: key });
    expect(body.data.lender_reference).toMatch(form);
  },
);

test.each(Object.keys(STORIES) as Story[])('the story `%s` is told step by step', async (story) => {
  const answer = await open({ service_quote_id: await quoted(), story });
  expect(answer.status).toBe(201);
  expect(states(answer)).toEqual(['created', ...STORIES[story]]);
  expect(answer.body.data.status).toBe(STORIES[story].at(-1));
  const told = await eventsOf(api.database, answer.body.data.credit_application_id as string);
  expect(told.map(({ sequence }) => sequence)).toEqual(told.map((_, at) => at + 1));
});

test.each([-600, 600])(
  'events are dated in their order, also when the database is %d seconds ahead of this machine',
  async (seconds) => {
    await advanceServiceClock(api.database, seconds);
    try {
      const id = await opened({ story: 'declined' });
      const { events } = (await api.get(`/v1/credit-applications/${id}`)).body.data;
      const moments = events.map((one: { occurred_at: string }) => one.occurred_at);
      expect(moments).toEqual(moments.toSorted());
      const ahead = Date.parse(moments.at(-1)) - Date.parse(moments[0]);
      expect(ahead).toBeLessThan(60_000);
    } finally {
      await setServiceClock(api.database, null);
    }
  },
);

test('a state that cannot follow is 409 with those that can, and nothing is stored', async () => {
  const completed = await opened({ story: 'completed' });
  const created = await opened();
  const declined = await opened({ story: 'declined' });
  const before = await stored();
  const refunds = ['partially_refunded', 'refunded'];
  const notLater = /^(created|paid_out|completed)$|refund/;
  for (const [id, status, may_follow] of [
    [completed, 'completed', refunds],
    [completed, 'accepted', refunds],
    [completed, 'cancelled', refunds],
    [created, 'paid_out', APPLICATION_STATES.filter((state) => !notLater.test(state))],
    [declined, 'accepted', []],
  ] as const)
    expect(await move(id, status)).toMatchObject(refusal(409, 'EVENT_NOT_APPLICABLE', { may_follow }));
  // A newer release, which was taken back, has stored it.
  const setState = (state: string) =>
    api.database.sql.unsafe(
      `update credit_applications set state = '${state}' where application_id = '${created}'`,
    );
  await setState('on_hold');
  expect(await move(created, 'submitted')).toMatchObject(
    refusal(409, 'EVENT_NOT_APPLICABLE', { may_follow: [] }),
  );
  await setState('created');
  expect(await stored()).toBe(before);
});

test('a step back that the table allows is told, and a partial refund again', async () => {
  const id = await opened();
  const ready = 'accepted deposit_paid action_required deposit_paid signed ready activated'.split(' ');
  for (const status of [...ready, 'partially_refunded', 'partially_refunded', 'refunded'])
    expect(await move(id, status)).toMatchObject({ status: 200, body: { data: { status } } });
});

test('a live key finds no simulator, whatever it sends', async () => {
  const id = await opened();
  const quoteId = await quoted({}, { key: api.keys.live });
  const before = await stored();
  const live = { key: api.keys.live };
  for (const body of [{ service_quote_id: quoteId }, { unknown: 1 }, '{'])
    expect(await open(body, live)).toMatchObject(refusal(404, 'NOT_FOUND'));
  expect(await move(id, 'submitted', live)).toMatchObject(refusal(404, 'NOT_FOUND'));
  expect(await api.call({ path: `${PATH}?x=1`, body: {}, ...live })).toMatchObject(refusal(404, 'NOT_FOUND'));
  // Nor does a sandbox key find the live quote.
  expect(await open({ service_quote_id: quoteId })).toMatchObject(refusal(404, 'QUOTE_NOT_FOUND'));
  expect(await stored()).toBe(before);
});

test("another partner's quote and application do not exist, nor does a lender's own application", async () => {
  const quoteId = await quoted({ merchant_id: SHOP });
  const link = (await api.quote({ merchant_id: SHOP })).body.data.products[0].merchant_finance_url;
  const lenders = await lender.openLink(link);
  const id = await opened();
  const before = await stored();
  const theirs = { key: stranger };
  const unknown = await open({ service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6' }, theirs);
  const notTheirs = await open({ service_quote_id: quoteId }, theirs);
  expect(notTheirs).toMatchObject(refusal(404, 'QUOTE_NOT_FOUND', { field: 'service_quote_id' }));
  expect(notTheirs.text).toBe(unknown.text);
  expect(await move(id, 'submitted', theirs)).toMatchObject(refusal(404, 'APPLICATION_NOT_FOUND'));
  const real = lenders.body.data.credit_application_id as string;
  expect(await move(real, 'submitted')).toMatchObject(refusal(404, 'APPLICATION_NOT_FOUND'));
  expect(await stored()).toBe(before);
});

// One example of each refusal is in the contract, and tried in documentation.test.ts.
test.each([
  [{ service_quote_id: 'x y' }, 400, 'INVALID_REQUEST', 'service_quote_id'],
  [{ service_quote_id: 'qte_1', storey: 'completed' }, 400, 'INVALID_REQUEST', 'storey'],
  [{ service_quote_id: 'qte_1', credit_product: null }, 400, 'INVALID_REQUEST', 'credit_product'],
  [{ service_quote_id: 'qte_1' }, 404, 'QUOTE_NOT_FOUND', 'service_quote_id'],
])('%j is %i %s', async (body, status, code, field) => {
  expect(await open(body)).toMatchObject({ status, body: { error: { code, details: { field } } } });
});

test('a product that was not quoted is 404, and so is a quote without products', async () => {
  const quoteId = await quoted();
  for (const body of [
    { service_quote_id: quoteId, credit_product: 'Another' },
    { service_quote_id: await quoted({ merchant_id: 'M000003' }) },
  ])
    expect(await open(body)).toMatchObject(refusal(404, 'PRODUCT_NOT_QUOTED', { field: 'credit_product' }));
});

test('thirty at once from one quote stay at twenty; a lender is neither counted nor held up', async () => {
  const answers = await api.quote({ merchant_id: SHOP });
  const { service_quote_id: quoteId, products } = answers.body.data;
  const calls = await Promise.all(Array.from({ length: 30 }, () => open({ service_quote_id: quoteId })));
  const made = calls.filter(({ status }) => status === 201);
  expect(made).toHaveLength(20);
  expect(new Set(made.map(({ body }) => body.data.credit_application_id)).size).toBe(20);
  for (const refused of calls.filter((one) => !made.includes(one)))
    expect(refused).toMatchObject(refusal(409, 'SIMULATION_LIMIT_REACHED'));
  const simulated = await api.database.sql`select 1 from credit_applications where quote_id = ${quoteId}`;
  expect(simulated).toHaveLength(20);
  // The same reference as that of a simulated one is free for the lender.
  const { merchant_finance_url: link } = products[0];
  const reference = made[0]?.body.data.lender_reference as string;
  const first = await lender.openLink(link, reference);
  expect(first.status).toBe(200);
  expect((await lender.openLink(link, reference)).body).toEqual(first.body);
  const crowded = await api.database.sql`select 1 from operator_events where kind = 'quote_crowded'`;
  expect(crowded).toHaveLength(0);
  expect(await api.metric('pfqs_crowded_quote_applications_total')).toBe(0);
});

describe('references of a lender whose form allows ten', () => {
  const FORM = String.raw`\d`;
  const of = (key: string, partner_id: string) => ({
    quote: () => quoted({ merchant_id: SHOP, partner_id }, { key }),
    open: (quoteId: string) =>
      open({ service_quote_id: quoteId, credit_product: '10 months interest-free' }, { key }),
  });
  let before: string;
  beforeAll(async () => {
    const [lender] = await api.database.sql`select reference_format from lenders where lender = 'lender_b'`;
    before = lender?.['reference_format'];
    await api.database.sql`update lenders set reference_format = ${FORM} where lender = 'lender_b'`;
    await api.database.sql`delete from credit_applications where lender = 'lender_b' and simulated is not null
      and not exists (select from lender_events e where e.application_id = credit_applications.application_id)`;
  });
  afterAll(() => api.database.sql`update lenders set reference_format = ${before} where lender = 'lender_b'`);

  test('are used up for one partner alone, which is 409, and for no lender', async () => {
    const mine = of(api.keys.test, api.partnerId);
    const theirs = of(stranger, 'P200002');
    const quoteId = await mine.quote();
    for (let count = 0; count < 10; count += 1) expect((await mine.open(quoteId)).status).toBe(201);
    const stored = async () => (await api.database.sql`select 1 from credit_applications`).length;
    const there = await stored();
    expect(await mine.open(await mine.quote())).toMatchObject(refusal(409, 'SIMULATION_LIMIT_REACHED'));
    expect(await stored()).toBe(there);
    const another = await theirs.open(await theirs.quote());
    expect(another.status).toBe(201);
    const real = await internalClient(api, { lender: 'lender_b' });
    const links = (await api.quote({ merchant_id: SHOP })).body.data.products;
    const named = ({ credit_product }: { credit_product: string }) => credit_product.startsWith('10 months');
    const link = links.find(named).merchant_finance_url;
    for (const reference of ['0', '5', '9'])
      expect(await real.openLink(link, reference)).toMatchObject({ status: 200 });
  });
});

test('an application takes 100 events', async () => {
  const id = await opened({ story: 'completed' });
  for (let events = 8; events < 100; events += 1) {
    const answer = await move(id, 'partially_refunded');
    if (answer.status !== 200) expect(answer).toMatchObject(refusal(409, 'SIMULATION_LIMIT_REACHED'));
  }
  expect(await move(id, 'partially_refunded')).toMatchObject(refusal(409, 'SIMULATION_LIMIT_REACHED'));
  expect((await api.get(`/v1/credit-applications/${id}`)).body.data.events).toHaveLength(100);
});

test('a service key does not see a simulated application of its lender', async () => {
  const quote = await storeQuote(api.database, { partnerId: api.partnerId });
  const { body } = await open({ service_quote_id: quote.quoteId, credit_product: 'Classic 12' });
  const id = body.data.credit_application_id as string;
  expect(body.data.lender).toBe('lender_a');
  expect(await lender.read(id)).toMatchObject(refusal(404, 'APPLICATION_NOT_FOUND'));
  const event = { lender_event_id: 'le-sim', status: 'submitted', occurred_at: '2026-11-21T12:00:00Z' };
  expect(await lender.tell(id, event)).toMatchObject(refusal(404, 'APPLICATION_NOT_FOUND'));
});

describe('while the database is slow', () => {
  const TIMEOUT_MS = 4_000;
  const slow = useApi({ environment: { DATABASE_TIMEOUT_MS: String(TIMEOUT_MS) } });
  const tellCompleted = (quoteId: string) =>
    slow.call({ path: PATH, body: { service_quote_id: quoteId, story: 'completed' } });
  const quoteOf = async () => (await slow.quote()).body.data.service_quote_id as string;
  const eventsStored = (quoteId: string) =>
    slow.database.sql<{ events: number }[]>`
      select sequence as events from credit_applications where quote_id = ${quoteId}`;
  /** Sessions of the API that wait for a lock, or are in a transaction. */
  const sessions = async (condition: string) =>
    (
      await slow.database.sql.unsafe(
        `select 1 from pg_stat_activity where datname = current_database() and application_name like 'pfqs api%' and ${condition}`,
      )
    ).length;

  test('a call that is answered 500, as it took too long, has stored nothing', async () => {
    const blocker = openDatabaseAt(slow.databaseUrl, { poolSize: 2 });
    const lock = async (table: string) => {
      let release = () => {};
      const released = new Promise<void>((resolve) => (release = resolve));
      let held: Promise<unknown> | undefined;
      await new Promise<void>((locked, failed) => {
        held = blocker.sql.begin(async (tx) => {
          await tx.unsafe(`lock table ${table} in exclusive mode`);
          locked();
          await released;
        });
        held.catch(failed);
      });
      return async () => {
        release();
        await held;
      };
    };
    const quoteId = await quoteOf();
    const [first, second] = [await lock('credit_applications'), await lock('notifications')];
    try {
      // Each statement waits for less than its own timeout, and both together for more.
      const beganAt = performance.now();
      const answer = tellCompleted(quoteId);
      await until(
        async () => (await sessions(`wait_event_type = 'Lock'`)) === 1,
        'a wait for the first lock',
      );
      await until(() => performance.now() - beganAt > TIMEOUT_MS * 0.6, 'most of the timeout');
      await first();
      expect((await answer).status).toBe(500);
    } finally {
      await second();
      await until(async () => (await sessions(`state <> 'idle'`)) === 0, 'the end of the transaction');
      await blocker.close();
    }
    expect(await eventsStored(quoteId)).toEqual([]);
  });

  test('25 at once on one quote: 20 are stored and answered, and the others refused', async () => {
    const quoteId = await quoteOf();
    const answers = await Promise.all(Array.from({ length: 25 }, () => tellCompleted(quoteId)));
    const statuses = answers.map(({ status }) => status);
    const stored = await eventsStored(quoteId);
    expect(statuses.filter((status) => status === 201)).toHaveLength(stored.length);
    // On a slow machine some have waited for too long.
    expect(statuses.filter((status) => ![201, 409, 429].includes(status))).toEqual([]);
    for (const { events } of stored) expect(events).toBeGreaterThan(5);
  });
});
