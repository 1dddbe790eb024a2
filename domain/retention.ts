/**
 * What is removed once its time is over, in this order, as a notification must not go before its attempts. `payloads`:
 * the bodies of notifications and what was answered to them; the rows stay.
 */
export const RETENTION_KINDS = ['payloads', 'attempts', 'notifications', 'quotes'] as const;
export type RetentionKind = (typeof RETENTION_KINDS)[number];

/** How many days each is kept at least, counted from its creation. */
export type RetentionDays = Readonly<Record<RetentionKind, number>>;

/** Nothing is removed sooner, whatever anybody asks for: recoveries reach back 30 days, and so long are notifications held. */
export const LEAST_RETENTION_DAYS = 31;

export interface RetentionTask {
  readonly kind: RetentionKind;
  /** Id of the notification that the step before came to, for `payloads`; null: from the beginning. */
  readonly cursor: string | null;
}

/** Nothing was removed. */
export class RetentionRefused extends Error {
  override readonly name = 'RetentionRefused';
}

const NOTIFICATION_ID = /^ntf_[0-7][0-9A-HJKMNP-TV-Z]{25}$/;

/**
 * Reads a task that may come from anybody who reaches Temporal. A false cursor skips bodies until the next run, and removes
 * nothing more.
 * @throws RetentionRefused when it is anything but a kind and a cursor: days, above all, are the worker's settings.
 */
export function readRetentionTask(given: unknown): RetentionTask {
  const { kind, cursor, ...more } = (given ?? {}) as Readonly<Record<string, unknown>>;
  const known = RETENTION_KINDS.find((one) => one === kind);
  if (known === undefined || Object.keys(more).length > 0)
    throw new RetentionRefused('a task is a kind and a cursor, and nothing else');
  if (cursor === null) return { kind: known, cursor };
  if (known !== 'payloads' || typeof cursor !== 'string' || !NOTIFICATION_ID.test(cursor))
    throw new RetentionRefused('a cursor is the id of a notification, for payloads only');
  return { kind: known, cursor };
}

/** @throws RetentionRefused for fewer than 31 days, or anything that is no whole number of them. */
export function checkRetentionDays(days: number): void {
  if (!Number.isInteger(days) || days < LEAST_RETENTION_DAYS)
    throw new RetentionRefused(`nothing is removed before ${LEAST_RETENTION_DAYS} days`);
}
