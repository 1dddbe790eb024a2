import { ULID_PATTERN } from './notification-states';

/** What is removed, in this order: attempts before their notification. `payloads` are bodies and answers. */
export const RETENTION_KINDS = ['payloads', 'attempts', 'notifications', 'quotes'] as const;
export type RetentionKind = (typeof RETENTION_KINDS)[number];

/** Days that each kind is kept at least, from its creation. */
export type RetentionDays = Readonly<Record<RetentionKind, number>>;

/** The defaults of the settings; docs/decisions/postgres.md has the reasons. */
export const USUAL_RETENTION_DAYS = { payloads: 90, attempts: 400, notifications: 2_557, quotes: 2_557 };

/** Held notifications expire after as long. Later, bodies may be gone. */
export const LONGEST_RECOVERY_DAYS = 30;

/** Nothing is removed sooner, because recoveries reach back 30 days, and holds last 30 days. */
export const LEAST_RETENTION_DAYS = 31;

export interface RetentionTask {
  readonly kind: RetentionKind;
  /** The last notification of the step before, for `payloads`; null: from the beginning. */
  readonly cursor: string | null;
}

export class RetentionRefused extends Error {
  override readonly name = 'RetentionRefused';
}

/** Removed rows by their creation: the day (`2026-11-21`) for `payloads`, else the month or `default`. */
export type RemovedByPeriod = Readonly<Record<string, number>>;

export interface Removal {
  readonly kind: RetentionKind;
  readonly removed: RemovedByPeriod;
}

/** A few rows of older months are usual, as their application or notification has ended only now. */
const LATE_ROWS = 100;

/**
 * A daily run usually removes the bodies of 24 hours, which are in two UTC days, and one month of each
 * other kind. More means that fewer days are kept than before, runs were missed, or a clock is ahead.
 * @returns the rows beside the fullest of these, once they are more than 100, else 0
 */
export function beyondUsual({ kind, removed }: Removal): number {
  const usual = kind === 'payloads' ? 2 : 1;
  const { default: withoutMonth = 0, ...dated } = removed;
  const fullestFirst = Object.values(dated).toSorted((a, b) => b - a);
  const beside = fullestFirst.slice(usual).reduce((sum, rows) => sum + rows, withoutMonth);
  return beside > LATE_ROWS ? beside : 0;
}

const PERIOD = /^(?:\d{4}-\d{2}(?:-\d{2})?|default)$/;
/** More than ten years of days. */
const MOST_PERIODS = 4_000;

/**
 * Reads a removal, which anyone who reaches Temporal may have sent.
 * @throws RetentionRefused when it is none
 */
export function readRemoval(given: unknown): Removal {
  const { kind, removed } = (given ?? {}) as Readonly<Record<string, unknown>>;
  const known = RETENTION_KINDS.find((one) => one === kind);
  const periods = Object.entries((removed ?? {}) as Readonly<Record<string, unknown>>);
  const possible = periods.every(
    ([period, rows]) => PERIOD.test(period) && Number.isSafeInteger(rows) && Number(rows) >= 0,
  );
  if (known === undefined || periods.length > MOST_PERIODS || !possible)
    throw new RetentionRefused('a removal is a kind, and numbers of rows by day or month');
  return { kind: known, removed: removed as RemovedByPeriod };
}

export function addRemoved(one: RemovedByPeriod, other: RemovedByPeriod): RemovedByPeriod {
  const sums: Record<string, number> = { ...one };
  for (const [period, rows] of Object.entries(other)) sums[period] = (sums[period] ?? 0) + rows;
  return sums;
}

const NOTIFICATION_ID = new RegExp(`^ntf_${ULID_PATTERN}$`);

/**
 * Reads a task, which anyone who reaches Temporal may have sent. A false cursor only skips bodies until
 * the next run.
 * @throws RetentionRefused when it is more than a kind and a cursor, such as a number of days
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
