import { sql, type SQL } from 'drizzle-orm';
import {
  NOTIFICATION_TRANSITIONS,
  type NotificationEvent,
  type Transition,
} from '../../domain/notification-states';

type Table = typeof NOTIFICATION_TRANSITIONS;

/** Expressions for the fields that whoever reports an event gives. */
export type Given<E extends NotificationEvent, Expression> = Table[E] extends {
  readonly given: readonly (infer Field extends string)[];
}
  ? Readonly<Record<Field, Expression>>
  : Readonly<Record<string, never>>;

/** `column = expression` for all that an event changes, but for what is given. The row that is changed is `t`. */
function assignments(event: NotificationEvent): string[] {
  const {
    to,
    newGeneration,
    now = [],
    nowIfEmpty = [],
    clears = [],
  }: Transition = NOTIFICATION_TRANSITIONS[event];
  return [
    ...(to === null ? [] : [`state = '${to}'`]),
    ...(newGeneration ? ['generation = t.generation + 1'] : []),
    ...now.map((field) => `${field} = service_now()`),
    ...nowIfEmpty.map((field) => `${field} = coalesce(t.${field}, service_now())`),
    ...clears.map((field) => `${field} = null`),
  ];
}

/**
 * `update notifications t set …` for an event, as a constant text to be prepared. Only `claim_notifications` and
 * `clear_payloads`, functions of the migration, change notifications without it.
 */
export function updateText<E extends NotificationEvent>(event: E, given: Given<E, string>): string {
  const all = [...assignments(event), ...Object.entries(given).map((one) => one.join(' = '))];
  return `update notifications t set ${all.join(', ')}`;
}

/** The same with parameters. */
export function updateSql<E extends NotificationEvent>(event: E, given: Given<E, SQL>): SQL {
  const fixed = assignments(event).map((one) => sql.raw(one));
  const values = Object.entries(given as Record<string, SQL>);
  const all = [...fixed, ...values.map(([field, value]) => sql`${sql.raw(field)} = ${value}`)];
  return sql`update notifications t set ${sql.join(all, sql`, `)}`;
}
