import { applicationEventSchema, applicationEventText } from '../../../contracts/webhook-event';
import { parseKeyRing } from '../../../db/endpoints/key-ring';
import { findApplication } from '../../../db/applications/applications';
import { createApplication, type NewApplication } from '../../../db/applications/create';
import { createPartner } from '../../../db/catalogue/partners';
import { setEndpointState } from '../../../db/endpoints/endpoints';
import { newReference, openApplication, storeQuote, tell } from '../../support/applications';
import { useDatabase } from '../../support/database';
import { addEndpoint, newKeyRingText, setServiceClock } from '../../support/notifications';

const partnerId = 'P100001';
const database = useDatabase({ poolSize: 20 });

beforeAll(async () => {
  await createPartner(database.db, { partnerId, name: 'Example' });
});

afterEach(() => setServiceClock(database, null));

const storyOf = async (applicationId: string) => {
  const story = await findApplication(database.db, applicationId, 'all');
  if (story === null) throw new Error('there is no such application');
  return story;
};
const bodiesOf = async (applicationId: string) => {
  const rows = await database.sql<{ body: string }[]>`
    select body from notifications_now where application_id = ${applicationId} order by sequence`;
  return rows.map(({ body }) => applicationEventSchema.strict().parse(JSON.parse(body)));
};

describe('opening an application', () => {
  const wanted = (quoteId: string, fields: Partial<NewApplication> = {}): NewApplication => ({
    lender: 'lender_a',
    lenderReference: newReference(),
    quoteId,
    loanPence: 90_000,
    depositPence: 10_000,
    creditProduct: 'Classic 12',
    merchantReference: 'basket 2041',
    service: { keyId: 'svk_1', lender: fields.lender ?? 'lender_a', environment: 'sandbox' },
    requestId: 'rq_1',
    ...fields,
  });
  const ofSandbox = { keyId: 'svk_1', lender: 'lender_a', environment: 'sandbox' } as const;
  const ofLive = { keyId: 'svk_2', lender: 'lender_a', environment: 'live' } as const;
  const asLenderB = { lender: 'lender_b', lenderReference: '0001234' };
  const create = (application: NewApplication) =>
    createApplication(database.db, application, applicationEventText);

  test('keeps what the quote says, and tells its partner', async () => {
    await setServiceClock(database, '2026-11-21 12:00:00+00');
    const { quoteId } = await storeQuote(database, { partnerId, environment: 'live' });
    const answer = await create(wanted(quoteId, { lenderReference: 'AB12CD34', service: ofLive }));
    if (answer.kind !== 'created') throw new Error(answer.kind);
    const { applicationId } = answer.application;
    expect(applicationId).toMatch(/^app_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(await storyOf(applicationId)).toMatchObject({
      application: { state: 'created', environment: 'live', merchantId: 'M000001', sequence: 1 },
      events: [],
      notifications: [{ sequence: 1, eventType: 'credit_application.created', state: 'held' }],
    });
    expect(await bodiesOf(applicationId)).toEqual([
      {
        event_id: expect.stringMatching(/^evt_/),
        event_type: 'credit_application.created',
        api_version: 'v1',
        environment: 'live',
        created_at: '2026-11-21T12:00:00.000Z',
        sequence: 1,
        data: {
          credit_application_id: applicationId,
          service_quote_id: quoteId,
          merchant_reference: 'basket 2041',
          merchant_id: 'M000001',
          lender: 'lender_a',
          lender_reference: 'AB12CD34',
          status: 'created',
          previous_status: null,
          loan_amount: '900.00',
          customer_deposit: '100.00',
          occurred_at: '2026-11-21T12:00:00.000Z',
          credit_product: 'Classic 12',
        },
      },
    ]);
    // A field that came later is the last.
    const [row] = await database.sql`select body from notifications where application_id = ${applicationId}`;
    expect(row?.['body']).toMatch(/,"credit_product":"Classic 12"}}$/);
  });

  test.each<[string, Partial<NewApplication>]>([
    ['reference_format', { lenderReference: 'AB12CD3' }],
    ['reference_format', { lender: 'lender_b', lenderReference: 'AB12CD34' }],
    ['amounts_not_quoted', { loanPence: 90_001 }],
    ['amounts_not_quoted', { depositPence: 9_999, creditProduct: null }],
    ['amounts_not_quoted', { loanPence: 50_000, depositPence: 50_000 }],
    ['merchant_reference_differs', { merchantReference: 'basket 2042' }],
  ])('is refused as %s: %j', async (kind, fields) => {
    const { quoteId } = await storeQuote(database, { partnerId });
    expect(await create(wanted(quoteId, fields))).toEqual({ kind });
  });

  test.each<[string, Partial<NewApplication>, boolean]>([
    ['lender_not_found', { lender: 'lender_z', service: ofSandbox }, true],
    ['lender_not_found', { lender: 'lender_b', service: ofSandbox }, true],
    ['quote_not_found', { quoteId: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6' }, false],
    ['quote_not_found', { service: ofLive }, true],
    ['product_not_quoted', { creditProduct: 'classic 12' }, false],
    ['product_not_quoted', { ...asLenderB }, true],
    ['product_not_quoted', { ...asLenderB, creditProduct: null }, true],
  ])('is refused as %s outside the binding of the key: %j', async (kind, fields, ofOthers) => {
    const { quoteId } = await storeQuote(database, { partnerId });
    expect(await create(wanted(quoteId, fields))).toEqual({ kind, ofOthers });
  });

  test('is refused when nothing fitted', async () => {
    const { quoteId } = await storeQuote(database, { partnerId, fitted: [] });
    for (const creditProduct of ['Classic 12', null])
      expect(await create(wanted(quoteId, { creditProduct }))).toEqual({
        kind: 'product_not_quoted',
        ofOthers: false,
      });
  });

  test('takes any product of the lender, and without a product the amounts of any, or of the summary', async () => {
    const response = '{"data":{"deposit_adjustment":{"corrected_deposit":"200.00"}}}';
    const { quoteId } = await storeQuote(database, { partnerId, response });
    const half = { loanPence: 50_000, depositPence: 50_000 };
    for (const fields of [
      { ...half, creditProduct: 'Half down' },
      { ...half, creditProduct: null },
      { loanPence: 80_000, depositPence: 20_000, creditProduct: null },
      { merchantReference: null },
    ]) {
      expect(await create(wanted(quoteId, fields))).toMatchObject({ kind: 'created', isNew: true });
    }
    expect(await create(wanted(quoteId, { loanPence: 80_000, depositPence: 20_000 }))).toEqual({
      kind: 'amounts_not_quoted',
    });
  });

  test('again is the same application, also once its quote is gone; with another content it is refused', async () => {
    const { quoteId } = await storeQuote(database, { partnerId });
    const other = await storeQuote(database, { partnerId });
    const first = wanted(quoteId);
    const answers = await Promise.all(Array.from({ length: 10 }, () => create(first)));
    const ids = answers.map((answer) => answer.kind === 'created' && answer.application.applicationId);
    expect(new Set(ids).size).toBe(1);
    expect(answers.filter((answer) => answer.kind === 'created' && answer.isNew)).toHaveLength(1);
    expect((await storyOf(String(ids[0]))).notifications).toHaveLength(1);

    expect(await create({ ...first, quoteId: other.quoteId })).toMatchObject({ kind: 'exists' });
    expect(await create({ ...first, creditProduct: null })).toMatchObject({ kind: 'exists' });
    expect(await create({ ...first, loanPence: 1 })).toMatchObject({ kind: 'exists' });
    await database.sql`delete from quotes where quote_id = ${quoteId}`;
    expect(await create(first)).toMatchObject({ kind: 'created', isNew: false });
  });

  test('a reference may stand for one application in each environment', async () => {
    const sandbox = await storeQuote(database, { partnerId });
    const live = await storeQuote(database, { partnerId, environment: 'live' });
    const first = wanted(sandbox.quoteId);
    expect(await create(first)).toMatchObject({ kind: 'created', isNew: true });
    expect(await create({ ...first, quoteId: live.quoteId, service: ofLive })).toMatchObject({
      kind: 'created',
      isNew: true,
      application: { environment: 'live' },
    });
  });
});

describe('what a lender tells', () => {
  test('moves the application on, and each move is a notification', async () => {
    const { applicationId } = await openApplication(database, { partnerId });
    const states = [
      'submitted',
      'referred',
      'accepted',
      'signed',
      'activated',
      'paid_out',
      'completed',
    ] as const;
    for (const state of states) {
      expect(await tell(database, applicationId, state)).toMatchObject({
        kind: 'recorded',
        isNew: true,
        event: { verdict: 'applied', stateAfter: state },
      });
    }
    const bodies = await bodiesOf(applicationId);
    expect(bodies.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(bodies.map(({ data }) => data.status)).toEqual(['created', ...states]);
    expect(bodies.map(({ data }) => data.previous_status)).toEqual([null, 'created', ...states.slice(0, -1)]);
    expect((await storyOf(applicationId)).events.map(({ sequence }) => sequence)).toEqual([
      2, 3, 4, 5, 6, 7, 8,
    ]);
  });

  test('is stored and not sent when it lies behind, is no news, or comes after the end', async () => {
    const { applicationId } = await openApplication(database, { partnerId });
    for (const state of ['submitted', 'accepted', 'accepted', 'referred', 'declined', 'accepted'] as const) {
      await tell(database, applicationId, state);
    }
    const { application, events, notifications } = await storyOf(applicationId);
    expect(application).toMatchObject({ state: 'declined', sequence: 4 });
    expect(events.map(({ verdict }) => verdict)).toEqual([
      'applied',
      'applied',
      'same_state',
      'not_applied',
      'applied',
      'not_applied',
    ]);
    expect(notifications.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4]);
  });

  test('makes nothing late that comes after it by being dated ahead', async () => {
    const { applicationId } = await openApplication(database, { partnerId });
    await tell(database, applicationId, 'signed', { occurredAt: new Date(Date.now() + 240_000) });
    await tell(database, applicationId, 'action_required');
    expect((await storyOf(applicationId)).application.state).toBe('action_required');
  });

  test('again answers the same, whatever has happened since; with another content it is refused', async () => {
    const { applicationId } = await openApplication(database, { partnerId });
    const other = await openApplication(database, { partnerId });
    const told = { lenderEventId: 'le-1', occurredAt: new Date('2026-11-21T12:00:00.123Z') };
    const first = await tell(database, applicationId, 'submitted', told);
    await tell(database, applicationId, 'declined');
    const again = await tell(database, applicationId, 'submitted', told);
    if (first.kind !== 'recorded' || again.kind !== 'recorded') throw new Error('not recorded');
    expect(again).toMatchObject({ isNew: false, event: { verdict: 'applied', stateAfter: 'submitted' } });
    expect(again.event).toMatchObject({
      eventNumber: first.event.eventNumber,
      receivedAt: first.event.receivedAt,
    });
    expect(await tell(database, applicationId, 'accepted', told)).toEqual({ kind: 'exists' });
    expect(await tell(database, applicationId, 'submitted', { lenderEventId: 'le-1' })).toEqual({
      kind: 'exists',
    });
    expect(await tell(database, other.applicationId, 'submitted', told)).toEqual({ kind: 'exists' });
    expect((await storyOf(applicationId)).events).toHaveLength(2);
    expect((await storyOf(other.applicationId)).events).toHaveLength(0);
  });

  test('is refused for an application that is not there', async () => {
    expect(await tell(database, 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6', 'submitted')).toEqual({
      kind: 'application_not_found',
      ofOthers: false,
    });
  });
});

test('a notification is due when its endpoint is there, and held when it is missing, disabled or of the other environment', async () => {
  const keyRing = parseKeyRing(newKeyRingText());
  await createPartner(database.db, { partnerId: 'P100002', name: 'Example' });
  const { applicationId } = await openApplication(database, { partnerId: 'P100002' });
  const live = await openApplication(database, { partnerId: 'P100002', environment: 'live' });
  const { endpointId } = await addEndpoint(database, {
    partnerId: 'P100002',
    url: 'https://hook.example/x',
    keyRing,
  });
  await tell(database, applicationId, 'submitted');
  await setEndpointState(database.db, endpointId, { state: 'disabled', reason: 'operator' });
  await tell(database, applicationId, 'accepted');
  const standing = async (id: string) =>
    (await storyOf(id)).notifications.map(({ state, endReason }) => [state, endReason]);
  expect(await standing(applicationId)).toEqual([
    ['held', 'webhook_not_registered'],
    ['queued', null],
    ['held', 'endpoint_disabled'],
  ]);
  expect(await standing(live.applicationId)).toEqual([['held', 'webhook_not_registered']]);
});

test('a change whose notification cannot be stored is no change', async () => {
  const { applicationId } = await openApplication(database, { partnerId });
  await database.sql`alter table notifications add constraint nothing_more check (false) not valid`;
  try {
    await expect(tell(database, applicationId, 'submitted', { lenderEventId: 'le-lost' })).rejects.toThrow(
      'nothing_more',
    );
  } finally {
    await database.sql`alter table notifications drop constraint nothing_more`;
  }
  expect(await storyOf(applicationId)).toMatchObject({
    application: { state: 'created', sequence: 1 },
    events: [],
  });
  expect(await tell(database, applicationId, 'submitted', { lenderEventId: 'le-lost' })).toMatchObject({
    isNew: true,
  });
});
