import { applicationEventText } from '../../contracts/webhook-event';
import { applyOverdueEvents } from '../../db/applications/lender-events';
import { useApi } from '../support/api';
import { newReference } from '../support/applications';
import { summaryLink } from '../support/finance-link';
import { APPLICATIONS, internalClient, type InternalClient } from '../support/internal-api';
import { addMerchant, SHOP } from '../support/merchants';
import { refusal } from '../../testbed/http-call';
import { advanceServiceClock, setServiceClock } from '../../testbed/notifications';

const api = useApi();
let lender: InternalClient;
let lenderB: InternalClient;

beforeAll(async () => {
  lender = await internalClient(api);
  lenderB = await internalClient(api, { lender: 'lender_b' });
  const percent = (share: number) => ({ depositMin: { basisPoints: share * 100, fixedPence: 0 } });
  await addMerchant(api.database, 'M100001', { products: [percent(20), percent(30)] });
  await addMerchant(api.database, 'M100002', { fcaAuthorised: false, products: [] });
  await addMerchant(api.database, 'M100003', { fcaAuthorised: false });
  // The summary's link has 15 %, which no product takes.
  const depositFloor = { basisPoints: 1_500, fixedPence: 0 };
  await addMerchant(api.database, 'M100005', { depositFloor, products: [percent(20)] });
  await addMerchant(api.database, 'M100004', { depositFloor: { basisPoints: 5_000, fixedPence: 0 } });
});

/** A quote of the shop, and what an integration reads off its links. */
async function quoted(fields: Record<string, unknown> = {}) {
  const request = { merchant_id: SHOP, merchant_reference: 'basket 2041', ...fields };
  const { data } = (await api.quote(request)).body;
  return { quoteId: data.service_quote_id as string, products: data.products, data };
}

const byParameters = (quoteId: string, fields: Record<string, unknown> = {}) => ({
  lender: 'lender_a',
  lender_reference: newReference(),
  service_quote_id: quoteId,
  loan_amount: '900.00',
  customer_deposit: '100.00',
  credit_product: '12 months at 9.9% APR',
  merchant_reference: 'basket 2041',
  ...fields,
});

const event = (status: string, fields: Record<string, unknown> = {}) => ({
  lender_event_id: `le-${newReference()}`,
  status,
  occurred_at: '2026-11-21T12:00:00+01:00',
  ...fields,
});

describe('opening an application', () => {
  test('takes every link of a quote as it was returned', async () => {
    const { quoteId, products, data } = await quoted({
      merchant_finance_url: 'https://shop.example/f?a=1#b',
    });
    const links: string[] = [
      ...products.map(({ merchant_finance_url: link }: { merchant_finance_url: string }) => link),
      summaryLink(data),
    ];
    expect(links).toHaveLength(4);
    for (const [at, link] of links.entries()) {
      // The second product is the other lender's.
      const [client, name, reference] =
        at === 1 ? [lenderB, 'lender_b', '7654321'] : [lender, 'lender_a', newReference()];
      const request = { lender: name, lender_reference: reference };
      const answer = await client.open({ ...request, finance_link: link });
      expect(answer).toMatchObject({
        status: 200,
        body: {
          data: {
            ...request,
            environment: 'sandbox',
            partner_id: api.partnerId,
            merchant_id: SHOP,
            service_quote_id: quoteId,
            merchant_reference: 'basket 2041',
            loan_amount: '900.00',
            customer_deposit: '100.00',
            credit_product: products[at]?.credit_product ?? null,
          },
        },
      });
    }
  });

  test.each([
    ['M100003', 'not shown, for want of authorisation'],
    ['M100004', 'with a raised deposit'],
    ['M100001', 'whose amounts no product has'],
  ])('takes the summary’s link of %s: %s', async (merchant) => {
    const { data } = await quoted({ merchant_id: merchant });
    expect(await lender.openLink(summaryLink(data))).toMatchObject({ status: 200 });
  });

  test('knows a raised deposit by its number, and in an older row by the answer', async () => {
    for (const row of [
      'used_deposit_pence = used_deposit_pence, response = $2',
      'used_deposit_pence = null',
    ]) {
      const { data, quoteId } = await quoted({ merchant_id: 'M100005' });
      expect(data.deposit_adjustment.corrected_deposit).toBe('150.00');
      const values = row.includes('$2') ? [quoteId, '{"success":true}'] : [quoteId];
      await api.database.sql.unsafe(`update quotes set ${row} where quote_id = $1`, values);
      expect(await lender.openLink(summaryLink(data))).toMatchObject({ status: 200 });
    }
  });

  test.each([
    ['M100001', 'of products of another lender'],
    ['M100002', 'of a merchant that is not authorised and has no products'],
    ['M000001', 'of a test merchant'],
    ['M000003', 'where nothing fitted'],
  ])('does not take the amounts of a quote of %s, %s', async (merchant) => {
    const { quoteId, products } = await quoted({ merchant_id: merchant });
    for (const credit_product of [null, products[0]?.credit_product ?? 'Product 0', '24 months']) {
      const reference = { lender: 'lender_b', lender_reference: '1234567' };
      expect(await lenderB.open(byParameters(quoteId, { ...reference, credit_product }))).toMatchObject(
        refusal(404, 'PRODUCT_NOT_QUOTED', { field: 'credit_product' }),
      );
    }
  });

  test('takes the links of the longest finance page, although they are longer', async () => {
    const page = 'https://shop.example/?a=';
    const { products, data } = await quoted({ merchant_finance_url: page.padEnd(2_048, 'b') });
    for (const link of [products[0].merchant_finance_url, summaryLink(data)])
      expect(await lender.openLink(link)).toMatchObject({ status: 200 });
  });

  test('takes the older name of the quote id, both names for the same quote, and no deposit for 0.00', async () => {
    const { quoteId } = await quoted({ customer_deposit: '0.00' });
    const none = { customer_deposit: null, service_quote_id: null };
    for (const fields of [
      { ...none, quote_id: quoteId },
      { ...none, service_quote_id: quoteId, quote_id: quoteId },
      { customer_deposit: 0, loan_amount: 900 },
    ])
      expect(await lender.open(byParameters(quoteId, fields))).toMatchObject({ status: 200 });
  });

  test('again answers the same to the letter, whatever has happened since; with another content it is refused', async () => {
    const { quoteId } = await quoted();
    const other = await quoted();
    const body = byParameters(quoteId);
    const first = await lender.open(body);
    const id = first.body.data.credit_application_id;
    await lender.tell(id, event('submitted'));
    const again = await Promise.all(Array.from({ length: 5 }, () => lender.open(body)));
    for (const answer of again) expect([answer.status, answer.text]).toEqual([first.status, first.text]);
    for (const fields of [
      { service_quote_id: other.quoteId },
      { credit_product: '10 months interest-free' },
      { loan_amount: '900.01' },
    ]) {
      const exists = refusal(409, 'APPLICATION_EXISTS', { credit_application_id: id });
      expect(await lender.open({ ...body, ...fields })).toMatchObject(exists);
    }
    expect((await lender.read(id)).body.data.notifications).toHaveLength(2);
  });

  test.each<[number, string, string, Record<string, unknown>]>([
    [400, 'MISSING_FIELD', 'lender', { lender: null, lender_reference: null }],
    [400, 'MISSING_FIELD', 'loan_amount', { loan_amount: null }],
    [400, 'MISSING_FIELD', 'service_quote_id', { service_quote_id: null }],
    [400, 'QUOTE_ID_MISMATCH', 'service_quote_id', { quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6' }],
    [400, 'INVALID_AMOUNT_FORMAT', 'loan_amount', { loan_amount: '900.001' }],
    [400, 'INVALID_REQUEST', 'customer_deposit', { customer_deposit: '-1' }],
    [400, 'INVALID_REQUEST', 'lender', { lender: 'Lender A' }],
    [400, 'INVALID_REQUEST', 'lender_reference', { lender_reference: 'a\0b' }],
    [400, 'INVALID_REQUEST', 'service_quote_id', { service_quote_id: 'qte_\0' }],
    [400, 'INVALID_REQUEST', 'credit_product', { credit_product: 'x'.repeat(201) }],
    [400, 'INVALID_REQUEST', 'merchant_reference', { merchant_reference: 'a&b' }],
    [400, 'INVALID_REQUEST', 'finance_link', { finance_link: 'http://shop.example/?loan_amount=1.00' }],
    [400, 'INVALID_REQUEST', 'finance_link', { finance_link: 7 }],
    // It says something twice.
    [400, 'INVALID_REQUEST', 'finance_link', { finance_link: 'https://a.example/?quote_id=1&quote_id=2' }],
    [400, 'INVALID_REQUEST', 'service_quote_id', { finance_link: 'https://shop.example/' }],
    [400, 'INVALID_LENDER_REFERENCE', 'lender_reference', { lender_reference: 'AB12CD3' }],
    [400, 'INVALID_LENDER_REFERENCE', 'lender_reference', { lender: 'lender_b' }],
    [404, 'LENDER_NOT_FOUND', 'lender', { lender: 'lender_z' }],
    [404, 'QUOTE_NOT_FOUND', 'service_quote_id', { service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6' }],
    [404, 'PRODUCT_NOT_QUOTED', 'credit_product', { credit_product: '10 months interest-free' }],
    [422, 'AMOUNTS_NOT_QUOTED', 'loan_amount', { loan_amount: '1000.00' }],
    [422, 'AMOUNTS_NOT_QUOTED', 'loan_amount', { loan_amount: '9'.repeat(40) }],
    [422, 'MERCHANT_REFERENCE_MISMATCH', 'merchant_reference', { merchant_reference: 'basket 2042' }],
  ])('%i %s for %s: %j', async (status, code, field, fields) => {
    const { quoteId } = await quoted();
    const client = fields['lender'] === 'lender_b' ? lenderB : lender;
    const answer = await client.open(byParameters(quoteId, fields));
    expect(answer).toMatchObject(refusal(status, code, { field }));
  });

  test('opens more than 20 from one quote, and warns of it once', async () => {
    const { quoteId } = await quoted();
    const openSome = async (count: number) => {
      const all = Array.from({ length: count }, () => lender.open(byParameters(quoteId)));
      for (const { status } of await Promise.all(all)) expect(status).toBe(200);
    };
    const metric = () => api.metric('pfqs_crowded_quote_applications_total');
    const warnings = () => api.logged('"kind":"quote_crowded"');
    await openSome(20);
    expect([await metric(), warnings()]).toEqual([0, []]);
    await openSome(5);
    expect(await metric()).toBe(5);
    expect(warnings()).toMatchObject([{ level: 40, service_quote_id: quoteId }]);
    const events = await api.database.sql`select partner_id, environment, details from operator_events`;
    const details = { service_quote_id: quoteId, merchant_id: SHOP, lender: 'lender_a' };
    expect(events).toMatchObject([{ partner_id: api.partnerId, environment: 'sandbox', details }]);
  });

  test('stores no field that it does not know', async () => {
    const { quoteId } = await quoted();
    const person = { name: 'Ada Lovelace', address: { street: '12 St James’s Square' }, iban: 'GB33BUKB' };
    const answer = await lender.open({ ...byParameters(quoteId), ...person, applicant: person });
    const id = answer.body.data.credit_application_id;
    expect((await lender.tell(id, { ...event('submitted'), ...person })).status).toBe(200);
    const rows = await api.database.sql`
      select a::text || coalesce(string_agg(e::text, ''), '') || coalesce(string_agg(n::text, ''), '') as "all"
      from credit_applications a left join lender_events e using (application_id)
      left join notifications n using (application_id) where application_id = ${id} group by a.*`;
    expect(rows).toHaveLength(1);
    for (const text of [JSON.stringify(rows), api.logs.join('')]) {
      for (const word of ['Lovelace', 'Square', 'BUKB']) expect(text).not.toContain(word);
    }
  });
});

describe('telling a status', () => {
  const opened = async () => {
    const { quoteId } = await quoted();
    return (await lender.open(byParameters(quoteId))).body.data.credit_application_id as string;
  };

  test('answers what came of it, and the history tells it all', async () => {
    const id = await opened();
    const outcomes = [];
    for (const status of ['paid_out', 'submitted', 'submitted', 'signed', 'accepted', 'activated']) {
      const { body } = await lender.tell(id, event(status));
      outcomes.push([body.data.outcome, body.data.application_status]);
    }
    expect(outcomes).toEqual([
      ['waiting', 'created'],
      ['applied', 'submitted'],
      ['same_state', 'submitted'],
      ['applied', 'signed'],
      ['not_applied', 'signed'],
      ['applied', 'paid_out'],
    ]);
    const { data } = (await lender.read(id)).body;
    expect(data).toMatchObject({ credit_application_id: id, status: 'paid_out' });
    const fields = (rows: Record<string, unknown>[], ...names: string[]) =>
      rows.map((one) => names.map((name) => one[name]));
    expect(fields(data.lender_events, 'status', 'outcome', 'previous_status', 'sequence')).toEqual([
      ['paid_out', 'applied', 'activated', 5],
      ['submitted', 'applied', 'created', 2],
      ['submitted', 'same_state', null, null],
      ['signed', 'applied', 'submitted', 3],
      ['accepted', 'not_applied', null, null],
      ['activated', 'applied', 'signed', 4],
    ]);
    expect(data.lender_events[0].occurred_at).toBe('2026-11-21T11:00:00.000Z');
    expect(fields(data.notifications, 'sequence', 'event_type', 'state')).toEqual([
      [1, 'credit_application.created', 'held'],
      [2, 'credit_application.submitted', 'held'],
      [3, 'credit_application.signed', 'held'],
      [4, 'credit_application.activated', 'held'],
      [5, 'credit_application.paid_out', 'held'],
    ]);
  });

  test('an application takes 50 events that wait, and 1,000 in all; those that it has are answered as before', async () => {
    const id = await opened();
    const [early, first] = [event('partially_refunded'), event('created')];
    const answers = [await lender.tell(id, early), await lender.tell(id, first)];
    const repeat = (event: { lender_event_id: string }, times: number) => api.database.sql`
      insert into lender_events (application_id, lender, environment, lender_event_id, status, occurred_at, verdict, state_after, waits_until)
      select application_id, lender, environment, lender_event_id || '-' || g, status, occurred_at, verdict, state_after, waits_until
      from lender_events, generate_series(1, ${times}) g where lender_event_id = ${event.lender_event_id}`;
    const full = refusal(409, 'LENDER_EVENT_LIMIT_REACHED');
    await repeat(early, 48);
    expect(await lender.tell(id, event('refunded'))).toMatchObject({ status: 200 });
    expect(await lender.tell(id, event('refunded'))).toMatchObject(full);
    await repeat(first, 947);
    expect(await lender.tell(id, event('created'))).toMatchObject({ status: 200 });
    expect(await lender.tell(id, event('created'))).toMatchObject({ status: 200 });
    expect(await lender.tell(id, event('activated'))).toMatchObject(full);
    for (const [at, known] of [early, first].entries())
      expect((await lender.tell(id, known)).text).toBe(answers[at]?.text);
    expect((await lender.read(id)).body.data.lender_events).toHaveLength(1_000);
    expect((await lender.tell(await opened(), event('submitted'))).status).toBe(200);
  });

  test('nothing is judged by a state of a newer release: that is refused until the release is back', async () => {
    const id = await opened();
    const first = event('submitted');
    const answer = await lender.tell(id, first);
    const early = event('paid_out');
    await lender.tell(id, early);
    const change = (column: string, value: string) =>
      api.database.sql.unsafe(`update ${column} = '${value}' where application_id = '${id}'`);
    await change('credit_applications set state', 'on_hold');
    const unknown = refusal(503, 'APPLICATION_STATE_UNKNOWN');
    const refused = await lender.tell(id, event('accepted'));
    expect(refused).toMatchObject(unknown);
    expect(refused.headers['retry-after']).toBe('60');
    expect(refused.body.error.message).toContain('on_hold');
    expect((await lender.tell(id, first)).text).toBe(answer.text);
    // An event that waits has it.
    await change('credit_applications set state', 'submitted');
    await change("lender_events set waits_until = service_now() - interval '1 s', status", 'on_hold');
    await expect(applyOverdueEvents(api.database.db, id, applicationEventText)).rejects.toThrow('on_hold');
    expect(await lender.tell(id, event('accepted'))).toMatchObject(unknown);
    await change('lender_events set status', 'paid_out');
    expect(await lender.tell(id, event('accepted'))).toMatchObject({
      status: 200,
      body: { data: { outcome: 'applied' } },
    });
  });

  test('again answers the same to the letter; the same id with another content is refused', async () => {
    const id = await opened();
    const [early, first] = [event('paid_out'), event('submitted')];
    const answers = [await lender.tell(id, early), await lender.tell(id, first)];
    const sameMoment = { ...first, occurred_at: '2026-11-21T11:00:00.000Z' };
    expect((await lender.tell(id, sameMoment)).text).toBe(answers[1]?.text);
    expect(await lender.tell(id, early)).toMatchObject({ status: 200, text: answers[0]?.text });
    const exists = refusal(409, 'LENDER_EVENT_EXISTS', { field: 'lender_event_id' });
    for (const fields of [{ status: 'accepted' }, { occurred_at: '2026-11-21T12:00:01Z' }])
      expect(await lender.tell(id, { ...first, ...fields })).toMatchObject(exists);
    expect((await lender.tell(await opened(), first)).status).toBe(409);
    const { data } = (await lender.read(id)).body;
    expect(data.lender_events).toHaveLength(2);
    const [{ received_at: received, waits_until: until }, { waits_until: other }] = data.lender_events;
    expect(Math.abs(Date.parse(until) - Date.parse(received) - 600_000)).toBeLessThan(100);
    expect(other).toBeNull();
  });

  test.each<[number, string, string, Record<string, unknown>]>([
    [400, 'MISSING_FIELD', 'lender_event_id', { lender_event_id: null, occurred_at: null }],
    [400, 'INVALID_REQUEST', 'lender_event_id', { lender_event_id: 'a b' }],
    [400, 'INVALID_REQUEST', 'lender_event_id', { lender_event_id: 'x'.repeat(129) }],
    [400, 'INVALID_REQUEST', 'status', { status: 'test' }],
    [400, 'INVALID_REQUEST', 'status', { status: 'constructor' }],
    [400, 'INVALID_REQUEST', 'occurred_at', { occurred_at: '2026-11-21' }],
    [400, 'INVALID_REQUEST', 'occurred_at', { occurred_at: '2098-01-01T00:00:00Z' }],
  ])('%i %s for %s: %j', async (status, code, field, fields) => {
    expect(await lender.tell(await opened(), event('submitted', fields))).toMatchObject(
      refusal(status, code, { field }),
    );
  });

  describe('that contradicts what it said before', () => {
    const at = (second: number) => new Date(Date.UTC(2026, 10, 21, 11, 0, second)).toISOString();
    const operatorEvents = (id: string) => api.database.sql`
      select kind, partner_id, environment, details from operator_events
      where details ->> 'application_id' = ${id} order by event_id`;
    // A pair that was never reported has no series.
    const counted = async (from: string, to: string) =>
      (await api.metric(`pfqs_lender_contradictions_total{lender="lender_a",from="${from}",to="${to}"}`)) ||
      0;
    const tellAll = async (id: string, states: readonly string[]) => {
      for (const [second, state] of states.entries())
        await lender.tell(id, event(state, { occurred_at: at(second) }));
    };

    test.each([
      ['declined', 'accepted', 'submitted'],
      ['paid_out', 'cancelled', 'accepted activated'],
      ['signed', 'accepted', 'submitted'],
    ])('%s, then %s: stored, not applied, not sent, and noticed', async (from, to, before) => {
      const id = await opened();
      const countedBefore = await counted(from, to);
      await tellAll(id, [...before.split(' '), from]);
      const { notifications } = (await lender.read(id)).body.data;
      const sent = event(to, { occurred_at: at(17) });
      const answer = { status: 200, body: { data: { outcome: 'not_applied', application_status: from } } };
      expect(await lender.tell(id, sent)).toMatchObject(answer);
      // Repeated, it is the same event.
      expect(await lender.tell(id, sent)).toMatchObject(answer);
      const after = (await lender.read(id)).body.data;
      expect(after).toMatchObject({ status: from, notifications });
      expect(after.lender_events.at(-1)).toMatchObject({ ...sent, outcome: 'not_applied', sequence: null });
      const details = {
        application_id: id,
        lender: 'lender_a',
        lender_event_id: sent.lender_event_id,
        from,
        to,
      };
      expect(await operatorEvents(id)).toMatchObject([
        { kind: 'lender_contradiction', partner_id: api.partnerId, environment: 'sandbox', details },
      ]);
      expect(await counted(from, to)).toBe(countedBefore + 1);
      expect(api.logged(sent.lender_event_id)).toMatchObject([
        {
          level: 40,
          kind: 'lender_contradiction',
          msg: expect.stringContaining(`${to} reported after ${from}`),
        },
      ]);
    });
  });

  test('a date may be five minutes in the future, not six', async () => {
    const id = await opened();
    const dated = (minutes: number) =>
      event('submitted', { occurred_at: new Date(Date.now() + minutes * 60_000).toISOString() });
    const tooLate = refusal(400, 'INVALID_REQUEST', { field: 'occurred_at' });
    expect(await lender.tell(id, dated(6))).toMatchObject(tooLate);
    expect(await lender.tell(id, dated(4.9))).toMatchObject({ body: { data: { outcome: 'applied' } } });
  });

  test('the future begins by the clock of the database, when the one of this machine is ten minutes slow', async () => {
    const id = await opened();
    await advanceServiceClock(api.database, 600);
    try {
      const dated = (minutes: number) =>
        event('submitted', { occurred_at: new Date(Date.now() + minutes * 60_000).toISOString() });
      expect((await lender.tell(id, dated(16))).status).toBe(400);
      expect(await lender.tell(id, dated(10))).toMatchObject({ body: { data: { outcome: 'applied' } } });
    } finally {
      await setServiceClock(api.database, null);
    }
  });

  test.each(['app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6', 'app_1', '%00', '..'])('of %s is 404', async (id) => {
    expect((await lender.tell(id, event('submitted'))).status).toBe(404);
    expect((await lender.read(id)).status).toBe(404);
  });
});

test('every request is logged once with its service key, and counted by its route', async () => {
  const answer = await lender.call({ body: {}, headers: { 'x-request-id': 'find-me' } });
  expect(answer.status).toBe(400);
  const line = { msg: 'request', route: APPLICATIONS, status: 400, keyId: lender.keyId };
  expect(api.logged('"requestId":"find-me"')).toMatchObject([line]);
  const count = `pfqs_http_request_seconds_count{route="${APPLICATIONS}",status="400"}`;
  expect(await api.metric(count)).toBeGreaterThan(0);
});

test('the document is served, and it is the one that is kept', async () => {
  const answer = await fetch(`http://127.0.0.1:${api.internalPort}/openapi.json`);
  const { default: document } = await import('../../contracts/internal-openapi.json');
  expect(await answer.json()).toEqual(JSON.parse(JSON.stringify(document)));
});
