import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../../db/postgres/connect';
import {
  NEW_DELIVERY,
  type Attempt,
  type Delivery,
  type Moment,
  type Notification,
  type Rows,
} from '../rows';

type Sql = Database['sql'];
export type Stored = Readonly<Record<string, unknown>>;

/** A change of one row, as keep-changes.sql keeps it. */
export interface Line {
  readonly tx: string;
  readonly moment: number;
  /** Who changed it: a process, or the test itself, which may put rows into any state. */
  readonly login?: string;
  readonly about: 'delivery' | 'notification' | 'attempt' | 'count' | 'pause' | 'endpoint';
  readonly was: Stored | null;
  readonly now: Stored | null;
}

/** From now on the changes are kept. Call it as the owner of the schema. */
export const keepChanges = (sql: Sql) =>
  sql.unsafe(readFileSync(join(__dirname, 'keep-changes.sql'), 'utf8'));

/** What was kept, in the order of its changes. */
export const keptChanges = async (sql: Sql): Promise<readonly Line[]> =>
  sql<Line[]>`select * from model_changes order by id`;

const PROCESS = /^quotes_/;
export const isPrepared = ({ login }: Line) => login !== undefined && !PROCESS.test(login);
export const idOf = ({ was, now }: Line) => ((now ?? was)?.['notification_id'] ?? '') as string;
export const queueName = (row: Stored) => `${String(row['partner_id'])}/${String(row['environment'])}`;

/** Lines by a key, in the order in which the groups can have followed each other: by their last line. */
export function grouped(lines: readonly Line[], key: (line: Line) => string): [string, Line[]][] {
  const all = new Map<string, Line[]>();
  for (const line of lines) {
    const own = all.get(key(line)) ?? [];
    all.delete(key(line));
    all.set(key(line), [...own, line]);
  }
  return [...all];
}

const time = (value: unknown): Moment => (typeof value === 'string' ? Date.parse(value) : null);

const notificationOf = (row: Stored): Notification => ({
  end: row['end_state'] as Notification['end'],
  generation: Number(row['generation']),
  attempts: Number(row['attempts']),
  delivered: row['delivered_at'] !== null,
  failed: row['failed_month'] !== null,
});

const attemptOf = (row: Stored): Attempt => ({
  number: Number(row['attempt_number']),
  generation: Number(row['generation']),
  began: time(row['started_at']) ?? 0,
  month: null,
  outcome: (row['failure'] === 'gone' ? 'gone' : row['outcome']) as Attempt['outcome'],
});

/** Columns that an older build does not have are left out. */
const deliveryOf = (row: Stored) =>
  Object.fromEntries(
    Object.keys(NEW_DELIVERY)
      .filter((name) => name in row)
      .map((name) => [name, /_at$|_month$/.test(name) ? time(row[name]) : row[name]]),
  ) as unknown as Delivery;

/** The rows after such changes. */
export function afterOf(before: Rows, changes: readonly Line[]): Rows {
  let { n, d } = before;
  const attempts = new Map(before.attempts.map((one) => [one.number, one]));
  for (const { about, was, now } of changes) {
    if (about === 'delivery') d = now && deliveryOf(now);
    if (about === 'notification') n = now && notificationOf(now);
    if (about === 'attempt' && was !== null) attempts.delete(attemptOf(was).number);
    if (about === 'attempt' && now !== null) attempts.set(attemptOf(now).number, attemptOf(now));
  }
  return { ...before, n, d, attempts: [...attempts.values()] };
}

/** When a statement changed the rows: the latest moment that it set, or the one at which the change was kept. */
export function presentOf(changes: readonly Line[]): number {
  const kept = changes.at(-1)?.moment ?? 0;
  const set = changes
    .filter(({ about }) => about === 'delivery' || about === 'attempt')
    .flatMap(({ was, now }) =>
      Object.entries(now ?? {}).flatMap(([name, value]) =>
        name.endsWith('_at') && value !== was?.[name] ? (time(value) ?? []) : [],
      ),
    );
  return Math.max(...set.filter((moment) => moment <= kept), 0) || kept;
}
