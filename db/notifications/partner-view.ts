import type { NotificationStatus } from '../../domain/notification-status';

/** An attempt as partners see it. Moments in Unix milliseconds. */
export interface ListedAttempt {
  readonly atMs: number;
  readonly outcome: string | null;
  readonly httpStatus: number | null;
  readonly failure: string | null;
  readonly durationMs: number | null;
}

/** A notification as partners see it in a list. Moments in Unix milliseconds. */
export interface Listed {
  readonly notificationId: string;
  readonly eventId: string;
  readonly eventType: string;
  readonly status: NotificationStatus;
  /** Ours, not the partner's word for it. */
  readonly endReason: string | null;
  readonly applicationId: string | null;
  readonly merchantReference: string | null;
  readonly sequence: number | null;
  readonly attempts: number;
  /** The last that has ended. */
  readonly lastAttempt: ListedAttempt | null;
  /** Null while it is paused. */
  readonly nextAttemptMs: number | null;
  readonly deliveredMs: number | null;
}

export interface ListedRow extends Omit<Listed, 'lastAttempt'> {
  readonly paused: boolean;
  readonly lastAtMs: number | null;
  readonly lastOutcome: string | null;
  readonly lastHttpStatus: number | null;
  readonly lastFailure: string | null;
  readonly lastDurationMs: number | null;
}

/** A moment arrives as text or as a Date depending on who asks; a number is always the same. */
export const msText = (column: string, name: string) =>
  `(extract(epoch from ${column}) * 1000)::float8 as "${name}"`;

export function rowToListed(row: ListedRow): Listed {
  const {
    paused,
    lastAtMs,
    lastOutcome,
    lastHttpStatus,
    lastFailure,
    lastDurationMs,
    nextAttemptMs,
    ...same
  } = row;
  const lastAttempt =
    lastAtMs === null
      ? null
      : {
          atMs: lastAtMs,
          outcome: lastOutcome,
          httpStatus: lastHttpStatus,
          failure: lastFailure,
          durationMs: lastDurationMs,
        };
  return { ...same, lastAttempt, nextAttemptMs: paused ? null : nextAttemptMs };
}
