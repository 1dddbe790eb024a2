import { setTimeout as sleep } from 'node:timers/promises';
import type { Db } from '../postgres/connect';
import { addRemoved, type RemovedByPeriod, type RetentionTask } from '../../domain/retention';
import { MONTHLY_KINDS, type MonthlyKind } from './kinds';
import { deleteBatch, dropMonth, expiredMonths } from './months';
import { clearPayloads, payloadMark } from './payloads';

/** Some tens of milliseconds of work, and a rest, so that live traffic hardly notices. */
const BATCH = 1_000;
const REST_MS = 50;

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
  readonly enough: () => boolean;
  readonly batch?: number;
}

/**
 * Removes what is past its time of one kind, in batches, until that is done or `enough` says so. Interrupted at any
 * moment, it is taken up by the next step. Statements may take long: give it a connection without a short timeout.
 */
export async function applyRetentionStep(
  db: Db,
  task: RetentionTask,
  options: RetentionStepOptions,
): Promise<RetentionStep> {
  const { kind } = task;
  return kind === 'payloads' ? clearSome(db, task, options) : removeSome(db, MONTHLY_KINDS[kind], options);
}

async function clearSome(
  db: Db,
  { cursor: from }: RetentionTask,
  { enough, batch = BATCH }: RetentionStepOptions,
): Promise<RetentionStep> {
  let cursor = from ?? (await payloadMark(db));
  let [removed, more] = [0, true];
  let byPeriod: RemovedByPeriod = {};
  while (more) {
    const done = await clearPayloads(db, { limit: batch, cursor });
    removed += done.cleared;
    byPeriod = addRemoved(byPeriod, done.byDay);
    ({ cursor, more } = done);
    if (enough()) break;
    if (more) await sleep(REST_MS);
  }
  return { removed, byPeriod, dropped: [], more, cursor, busy: [] };
}

async function removeSome(
  db: Db,
  kind: MonthlyKind,
  { enough, batch = BATCH }: RetentionStepOptions,
): Promise<RetentionStep> {
  const dropped: string[] = [];
  const busy: string[] = [];
  const inBatches = [`${kind.table}_default`];
  let removed = 0;
  let byPeriod: RemovedByPeriod = {};
  const gone = (partition: string, rows: number) => {
    removed += rows;
    if (rows > 0) byPeriod = addRemoved(byPeriod, { [periodOf(kind, partition)]: rows });
  };
  const step = (more: boolean): RetentionStep => ({ removed, byPeriod, dropped, more, cursor: null, busy });
  for (const month of await expiredMonths(db, kind)) {
    const outcome = await dropMonth(db, kind, month);
    if (outcome === 'busy') busy.push(month.partition);
    else if (outcome === 'stays') inBatches.push(month.partition);
    else {
      dropped.push(month.partition);
      gone(month.partition, outcome.rows);
    }
    if (enough()) return step(true);
  }
  for (const partition of inBatches) {
    for (let more = true; more;) {
      const deleted = await deleteBatch(db, kind, partition, batch);
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
