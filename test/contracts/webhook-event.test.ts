import { APPLICATION_STATES } from '../../domain/application-states';
import {
  applicationEventSchema,
  applicationEventText,
  MAX_EVENT_BYTES,
  testEvent,
  testEventSchema,
  testLenders,
} from '../../contracts/webhook-event';
import { EVENT_FIELDS, readSignable } from '../../contracts/signable-event';
import { variantsOf } from '../support/forged-bodies';

const change = {
  eventId: 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
  environment: 'live',
  createdAt: new Date('2026-11-21T12:00:00.000Z'),
  sequence: 3,
  applicationId: 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
  quoteId: 'qte_01KAF0W3N5Q7R9T1V3X5Z7B9D1',
  merchantReference: 'basket 2041',
  merchantId: 'M100001',
  lender: 'lender_a',
  lenderReference: 'AB12CD34',
  status: 'accepted',
  previousStatus: 'submitted',
  loanPence: 90_000,
  depositPence: 0,
  creditProduct: 'Crédit "classique" 12 <mois> / 😀',
  occurredAt: new Date('2026-11-21T11:59:59.999Z'),
} as const;
const BODY = applicationEventText(change);
const { eventId, createdAt } = change;
const OF = { eventId, environment: 'sandbox', createdAt } as const;

it.each([
  ['lender_a', /^[A-Z0-9]{8}$/],
  ['lender_b', /^\d{7}$/],
  [null, /^TEST$/],
] as const)('the test event of %s carries a reference of its form', (lender, form) => {
  const event = testEvent({ ...OF, lender });
  expect(testEventSchema.parse(event)).toEqual(event);
  expect(event.data.lender_reference).toMatch(form);
  expect(event.data.lender).toBe(lender ?? 'test_lender');
  expect(event.event_type).toBe('credit_application.test');
  expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThan(MAX_EVENT_BYTES);
});

test('the test event has the fields of a real one, in the same order, and differs in type and status alone', () => {
  const event = testEvent({ ...OF, lender: 'lender_a' });
  const real = {
    ...event,
    event_type: 'credit_application.accepted',
    data: { ...event.data, status: 'accepted', previous_status: 'submitted' },
  };
  const parsed = applicationEventSchema.strict().parse(real);
  expect(Object.keys(parsed)).toEqual(Object.keys(event));
  expect(Object.keys(parsed.data)).toEqual(Object.keys(event.data));
});

test('a test event can never be read as a real one', () => {
  const event = testEvent({ ...OF, lender: null });
  expect(applicationEventSchema.safeParse(event).success).toBe(false);
  expect(APPLICATION_STATES).not.toContain(event.data.status);
});

test('whatever we write is signed', () => {
  for (const status of APPLICATION_STATES) {
    const body = applicationEventText({ ...change, status, previousStatus: null, merchantReference: null });
    expect(readSignable(body)).toEqual(JSON.parse(body));
  }
  for (const lender of [...testLenders, null]) {
    const body = JSON.stringify(testEvent({ ...OF, lender }));
    expect(readSignable(body)).toEqual(JSON.parse(body));
  }
});

test('a state that a later release knows is signed', () => {
  expect(
    readSignable(BODY.replaceAll('"accepted"', '"on_hold"').replace('.accepted', '.on_hold')),
  ).not.toBeNull();
});

test.each(variantsOf(BODY))('%s is not signed', (_name, body) => {
  expect(body).not.toBe(BODY);
  expect(readSignable(body)).toBeNull();
});

test.each([
  '',
  'null',
  '[]',
  '"x"',
  '1',
  '{}',
  '{"data":{}}',
  '{"api_version":"__proto__","data":{}}',
  BODY.slice(0, -1),
])('%s is not signed', (body) => expect(readSignable(body)).toBeNull());

test('a field is signed from the release before the one that writes it, and bodies without it still are', () => {
  const v1 = EVENT_FIELDS['v1'];
  if (v1 === undefined) throw new Error('no v1');
  const added = { instalments: Number.isSafeInteger, channel: (value: unknown) => value === 'web' };
  const next = { v1: { ...v1, added } };
  const withFields = (fields: object) =>
    JSON.stringify({ ...JSON.parse(BODY), data: { ...JSON.parse(BODY).data, ...fields } });
  const newer = withFields({ instalments: 12 });
  const newest = withFields({ instalments: 12, channel: 'web' });
  // A worker of today does not know it, so no API may write it yet.
  expect(readSignable(newer)).toBeNull();
  for (const body of [BODY, newer, newest]) expect(readSignable(body, next)).toEqual(JSON.parse(body));
  for (const fields of [
    { channel: 'web' },
    { channel: 'web', instalments: 12 },
    { instalments: '12' },
    { instalments: 12, Channel: 'web' },
  ])
    expect(readSignable(withFields(fields), next)).toBeNull();
});
