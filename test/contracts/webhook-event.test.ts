import { APPLICATION_STATES } from '../../domain/application-states';
import {
  testEvent,
  applicationEventSchema,
  MAX_EVENT_BYTES,
  testEventSchema,
} from '../../contracts/webhook-event';

const input = {
  eventId: 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
  environment: 'sandbox',
  createdAt: new Date('2026-11-21T12:00:00.000Z'),
} as const;

it.each([
  ['lender_a', /^[A-Z0-9]{8}$/],
  ['lender_b', /^\d{7}$/],
  [null, /^TEST$/],
] as const)('the test event of %s carries a reference of its form', (lender, form) => {
  const event = testEvent({ ...input, lender });
  expect(testEventSchema.parse(event)).toEqual(event);
  expect(event.data.lender_reference).toMatch(form);
  expect(event.data.lender).toBe(lender ?? 'test_lender');
  expect(event.event_type).toBe('credit_application.test');
  expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThan(MAX_EVENT_BYTES);
});

test('the test event has the fields of a real one, in the same order, and differs in type and status alone', () => {
  const event = testEvent({ ...input, lender: 'lender_a' });
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
  const event = testEvent({ ...input, lender: null });
  expect(applicationEventSchema.safeParse(event).success).toBe(false);
  expect(APPLICATION_STATES).not.toContain(event.data.status);
});
