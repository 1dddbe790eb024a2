import { NOTIFICATION_STATUSES } from '../../domain/notification-status';
import { notificationStatus } from './notification-status';
import { NOTIFICATION_STATES } from '../../domain/notification-states';

const facts = (state: (typeof NOTIFICATION_STATES)[number], set: string) => ({
  state,
  deliveredAt: set.includes('d') ? 1 : null,
  firstAttemptAt: set.includes('f') ? 1 : null,
  takenAt: set.includes('t') ? 1 : null,
});

test.each([
  ['pending', '', 'pending'],
  ['pending', 't', 'pending'],
  ['started', 'ft', 'pending'],
  ['started', 'f', 'retrying'],
  ['pending', 'd', 'pending'],
  ['started', 'df', 'retrying'],
  ['held', 'f', 'held'],
  ['held', 'd', 'held'],
  ['delivered', 'df', 'delivered'],
  ['failed', 'f', 'failed'],
  ['failed', 'df', 'delivered'],
  ['cancelled', '', 'cancelled'],
  ['cancelled', 'd', 'delivered'],
  ['expired', '', 'expired'],
] as const)('%s with [%s] is %s', (state, set, status) => {
  expect(notificationStatus(facts(state, set))).toBe(status);
});

test('every status is of some state', () => {
  const sets = ['', 'd', 'f', 't', 'df', 'dt', 'ft', 'dft'];
  const met = NOTIFICATION_STATES.flatMap((state) =>
    sets.map((set) => notificationStatus(facts(state, set))),
  );
  expect([...new Set(met)].toSorted()).toEqual([...NOTIFICATION_STATUSES].toSorted());
});
