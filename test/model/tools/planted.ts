import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Database } from '../../../db/postgres/connect';

/** A change of one line. */
interface Patch {
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** A fault of the service, and the same in the model, which the search has to find. */
interface PlantedFault {
  readonly name: string;
  readonly service: Patch;
  readonly model: Patch & { readonly world: string };
}

const CLAIM = 'db/notifications/claim.sql';
const OPEN = 'db/notifications/open.sql';
const RECORD = 'db/notifications/record.sql';
const ROWS = 'rows.ts';
const TABLE = 'tools/table.ts';

export const FAULTS: readonly PlantedFault[] = [
  {
    name: 'an end leaves the row',
    service: { file: RECORD, from: 'DELETE FROM deliveries d WHERE d.notification_id = id;', to: '' },
    model: { file: ROWS, from: 'n: after, d: null,', to: 'n: after, d,', world: 'two crashes' },
  },
  {
    name: 'a claim takes no lease',
    service: { file: CLAIM, from: 'due_at = moment + lease', to: 'due_at = moment' },
    model: {
      file: 'processes.ts',
      from: 'due_at: NOW + sight.terms.lease',
      to: 'due_at: NOW',
      world: 'one slot',
    },
  },
  {
    name: 'a delivery counts when it is sent',
    service: {
      file: OPEN,
      from: '  INSERT INTO delivery_attempts (',
      to: `  UPDATE monthly_counts c SET delivered = c.delivered + 1 WHERE c.partner_id = n.partner_id;
  INSERT INTO delivery_attempts (`,
    },
    model: {
      file: ROWS,
      from: "kind: 'open', rows: { ...rows,",
      to: "kind: 'open', rows: { ...rows, counted: { delivered: 1, failed: 0 },",
      world: 'two crashes',
    },
  },
  {
    name: 'a failed attempt is retried at once',
    service: {
      file: RECORD,
      from: 'next_attempt_at = moment + make_interval',
      to: 'next_attempt_at = moment + 0 * make_interval',
    },
    model: { file: ROWS, from: 'next_attempt_at: now + wait', to: 'next_attempt_at: now', world: 'one slot' },
  },
  {
    name: 'a claim ignores the order of an application',
    service: {
      file: CLAIM,
      from: 'AND NOT EXISTS (SELECT FROM earlier_events_1(',
      to: 'AND NOT EXISTS (SELECT FROM earlier_events_1(NULL || ',
    },
    model: {
      file: ROWS,
      from: '!sight.earlier.some((one) => blocks(one, d.priority, sight))',
      to: 'sight.earlier.length >= 0',
      world: 'application, a fault',
    },
  },
  {
    name: 'an attempt that was left unfinished stays so',
    service: { file: OPEN, from: 'IF delivery.attempts > 0 THEN', to: 'IF delivery.attempts < 0 THEN' },
    model: {
      file: ROWS,
      from: "(one.outcome === null ? { ...one, outcome: 'unknown' } : one)",
      to: 'one',
      world: 'two crashes',
    },
  },
  {
    name: 'a resend counts again',
    service: {
      file: RECORD,
      from: '    IF n.delivered_at IS NULL THEN\n      -- Counted once',
      to: '    IF true THEN\n      -- Counted once',
    },
    model: {
      file: ROWS,
      from: 'const counted = n.delivered ? rows.counted :',
      to: 'const counted =',
      world: 'two orders',
    },
  },
  {
    name: 'a delivered test keeps its unit of the quota',
    service: {
      file: RECORD,
      from: 'reserved = greatest(c.reserved - coalesce(freed, false)::integer, 0)',
      to: 'reserved = c.reserved',
    },
    model: { file: ROWS, from: '[unit(d.reserved_month, -1)]', to: '[]', world: 'quota' },
  },
  {
    name: "an attempt begins during the partner's pause",
    service: {
      file: OPEN,
      from: 'IF deliveries_paused_1(delivery.partner_id',
      to: "IF deliveries_paused_1('' || delivery.environment",
    },
    model: {
      file: ROWS,
      from: 'if (sight.partnerPaused) return',
      to: 'if (sight.now < 0) return',
      world: 'two orders',
    },
  },
  {
    name: 'a parked delivery keeps its generation',
    service: {
      file: OPEN,
      from: "SET state = 'queued', generation = d.generation + 1",
      to: "SET state = 'queued', generation = d.generation",
    },
    model: {
      file: TABLE,
      from: 'change.newGeneration',
      to: "change.newGeneration && event !== 'park'",
      world: 'two orders',
    },
  },
];

/** @throws when the text has changed, so that the fault is none any more */
export function patched(text: string, { file, from, to }: Patch): string {
  if (!text.includes(from)) throw new Error(`${file} has no "${from}" to break`);
  return text.replace(from, () => to);
}

const root = join(__dirname, '../../..');

/** Puts a fault into the functions of one database. */
export const plant = (sql: Database['sql'], { service }: PlantedFault) =>
  sql.unsafe(patched(readFileSync(join(root, service.file), 'utf8'), service));
