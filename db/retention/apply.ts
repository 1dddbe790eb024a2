import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../postgres/connect';
import { appendChange } from '../audit/change-log';
import {
  addRemoved,
  checkRetentionDays,
  type RemovedByPeriod,
  type RetentionTask,
} from '../../domain/retention';
import { MONTHLY_KINDS, type MonthlyKind } from './kinds';
import { deleteBatch, dropMonth, expiredMonths } from './months';
import { clearPayloads, payloadMark } from './payloads';

/** Some tens of milliseconds of work, and a rest, so that live traffic hardly notices. */
const BATCH = 1_000;
const REST_MS = 50;

/** What to remove, and how many days of it are kept: 31 or more, by the settings. */
interface RetentionWork extends RetentionTask {
  readonly days: number;
}

export interface RetentionStep {
  /** Rows that went, or lost their payload. */
  readonly removed: number;
  /** The same by when they were created. */
  readonly byPeriod: RemovedByPeriod;
  /** Months that went as a whole, by their partitions. */
  readonly dropped: readonly string[];
  /** There is more to do, from this cursor on. */
  readonly more: boolean;
  readonly cursor: string | null;
  /** Months that were in use, so that they were not dropped: to be tried again a little later. */
  readonly busy: readonly string[];
}

interface RetentionStepOptions {
  /** Who does it, for the change log. */
  readonly actor: string;
  readonly enough: () => boolean;
  readonly batch?: number;
}

/**
 * Removes what is past its time of one kind, in batches, until that is done or `enough` says so. Interrupted at any
 * moment, it is taken up by the next step. Statements may take long: give it a connection without a short timeout.
 * @throws RetentionRefused for fewer than 31 days.
 */
export async function applyRetentionStep(
  db: Db,
  task: RetentionWork,
  options: RetentionStepOptions,
): Promise<RetentionStep> {
  const { kind, days } = task;
  checkRetentionDays(days);
  const step =
    kind === 'payloads'
      ? await clearSome(db, task, options)
      : await removeSome(db, MONTHLY_KINDS[kind], days, options);
  // Months are in the log already, each with its drop.
  const inBatches = step.removed - step.inMonths;
  if (inBatches > 0) {
    const details = { rows: inBatches, older_than_days: days };
    await appendChange(db, { actor: options.actor, action: 'retention.remove', subject: kind, details });
  }
  const { inMonths: _, ...said } = step;
  return said;
}

type CountedStep = RetentionStep & { readonly inMonths: number };

async function clearSome(
  db: Db,
  { days, cursor: from }: RetentionWork,
  { enough, batch = BATCH }: RetentionStepOptions,
): Promise<CountedStep> {
  let cursor = from ?? (await payloadMark(db));
  let [removed, more] = [0, true];
  let byPeriod: RemovedByPeriod = {};
  while (more) {
    const done = await clearPayloads(db, { days, limit: batch, cursor });
    removed += done.cleared;
    byPeriod = addRemoved(byPeriod, done.byDay);
    ({ cursor, more } = done);
    if (enough()) break;
    if (more) await sleep(REST_MS);
  }
  return { removed, byPeriod, inMonths: 0, dropped: [], more, cursor, busy: [] };
}

async function removeSome(
  db: Db,
  kind: MonthlyKind,
  days: number,
  { actor, enough, batch = BATCH }: RetentionStepOptions,
): Promise<CountedStep> {
  const dropped: string[] = [];
  const busy: string[] = [];
  const inBatches = [`${kind.table}_default`];
  let [removed, inMonths] = [0, 0];
  let byPeriod: RemovedByPeriod = {};
  const gone = (partition: string, rows: number) => {
    removed += rows;
    if (rows > 0) byPeriod = addRemoved(byPeriod, { [periodOf(kind, partition)]: rows });
  };
  const step = (more: boolean): CountedStep => ({
    removed,
    byPeriod,
    inMonths,
    dropped,
    more,
    cursor: null,
    busy,
  });
  for (const month of await expiredMonths(db, kind, days)) {
    const outcome = await dropMonth(db, kind, month, { days, actor });
    if (outcome === 'busy') busy.push(month.partition);
    else if (outcome === 'stays') inBatches.push(month.partition);
    else {
      dropped.push(month.partition);
      inMonths += outcome.rows;
      gone(month.partition, outcome.rows);
    }
    if (enough()) return step(true);
  }
  for (const partition of inBatches) {
    for (let more = true; more;) {
      const deleted = await deleteBatch(db, kind, partition, { days, limit: batch });
      gone(partition, deleted.rows);
      more = deleted.ids === batch;
      if (enough()) return step(true);
      if (more) await sleep(REST_MS);
    }
  }
  return step(false);
}

/** `quotes_2026_11` is `2026-11`, `quotes_default` is `default`. */
const periodOf = ({ table }: MonthlyKind, partition: string) =>
  partition.slice(table.length + 1).replace('_', '-');
