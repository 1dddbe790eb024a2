import { lenderEventRequest } from '../../contracts/credit-application';
import { recoverRequest } from '../../contracts/notification-recovery';
import { listNotificationsQuerySchema } from '../../contracts/notifications';
import { queryValidator } from '../../contracts/validate';

const readListQuery = queryValidator(listNotificationsQuerySchema);
const AT = new Date('2026-11-21T11:59:58.120Z');

test.each([
  '2026-11-21T11:59:58.120Z',
  '2026-11-21t11:59:58.120z',
  '2026-11-21T11:59:58.12z',
  '2026-11-21T12:59:58.120+01:00',
  '2026-11-21T12:59:58.120+0100',
  '2026-11-21t06:29:58.120-0530',
  // A plus in a query that was not percent-encoded.
  '2026-11-21T12:59:58.120 01:00',
  '2026-11-21T12:59:58.120 0100',
])('%s is a moment, in a filter, a body and an event of a lender', (sent) => {
  const event = { lender_event_id: '1', status: 'accepted', occurred_at: sent };
  expect(readListQuery({ created_from: sent })).toMatchObject({ value: { created_from: AT } });
  expect(recoverRequest.read({ created_from: sent, created_to: sent })).toMatchObject({
    value: { created_from: AT, created_to: AT },
  });
  expect(lenderEventRequest.read(event)).toMatchObject({ value: { occurred_at: AT } });
});

const FORM = 'created_from must be a moment of RFC 3339, such as 2026-11-21T12:00:00Z.';
test.each([
  ['2026-11-21', FORM],
  ['2026-11-21T11:59:58', FORM],
  ['2026-11-21 11:59:58Z', FORM],
  ['2026-11-21T11:59:58 Z', FORM],
  ['2026-11-21 11:59:58 01:00', FORM],
  ['2026-11-21T11:59:58  01:00', FORM],
  ['2026-11-21T11:59:58+01', FORM],
  ['2026-11-21T11:59:58+01000', FORM],
  ['2026-02-30T11:59:58z', FORM],
  ['2026-11-21T11:59:58+9900', FORM],
  ['1926-11-21t11:59:58z', 'created_from must lie between the years 2000 and 2099.'],
  [20_261_121, 'created_from must be of type string.'],
])('%s is none', (sent, message) => {
  expect(readListQuery({ created_from: sent })).toMatchObject({ violation: { error: { message } } });
});
