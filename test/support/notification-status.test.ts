import { NOTIFICATION_STATUSES, END_STATES } from '../../domain/notification-states';
import { notificationStatus } from './notification-status';

test('one that is under way is pending until an attempt has failed, whatever else is to come', () => {
  for (const state of ['queued', 'started'] as const) {
    expect(notificationStatus({ state, step: 0 })).toBe('pending');
    expect(notificationStatus({ state, step: 3 })).toBe('retrying');
  }
  for (const step of [0, 3]) expect(notificationStatus({ state: 'held', step })).toBe('held');
});

test('one that has ended is as it ended, and delivered if it ever was', () => {
  for (const state of END_STATES) {
    expect(notificationStatus({ state, deliveredAt: null })).toBe(state);
    expect(notificationStatus({ state, deliveredAt: 1 })).toBe('delivered');
  }
});

test('every status is one of these', () => {
  expect([...NOTIFICATION_STATUSES].toSorted()).toEqual(
    ['pending', 'retrying', 'held', ...END_STATES].toSorted(),
  );
});
