import type { Hint } from '../postgres/hints';

/** Dispatchers listen here for what is due, and recoverers for recoveries (`rcv_…`). */
export const NOTIFICATIONS_CHANNEL = 'notifications';

/** API processes listen here for the first attempts of tests, for which a caller waits. */
export const ATTEMPTS_CHANNEL = 'attempts';

/** Something is due now. Which one, the claim finds out: many such hints are one. */
export const SOMETHING_IS_DUE: Hint = { channel: NOTIFICATIONS_CHANNEL, payload: 'due' };

export const recoveryIsWanted = (recoveryId: string): Hint => ({
  channel: NOTIFICATIONS_CHANNEL,
  payload: recoveryId,
});

/** Of a test: an attempt has ended, or all of it has. */
export const testHasMoved = (notificationId: string): Hint => ({
  channel: ATTEMPTS_CHANNEL,
  payload: notificationId,
});

/** Of a test: its first attempt cannot begin for now, as Temporal is away. */
export const testIsDelayed = (notificationId: string): Hint => ({
  channel: ATTEMPTS_CHANNEL,
  payload: `${notificationId}:delayed`,
});
