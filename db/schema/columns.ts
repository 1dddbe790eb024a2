import { and, eq, gte, lt, sql, type SQL } from 'drizzle-orm';
import { bigint, customType, date, text, timestamp, type PgColumn } from 'drizzle-orm/pg-core';

/** The condition of a filter; undefined for an absent value, which `and` ignores. */
export const given = <Column extends PgColumn>(
  column: Column,
  value: Column['_']['data'] | undefined,
  compare: (column: PgColumn, value: unknown) => SQL = eq,
): SQL | undefined => (value === undefined ? undefined : compare(column, value));

/** A span of time: moments in ISO 8601, the end exclusive, or none. */
export interface Within {
  readonly since: string;
  readonly until?: string | undefined;
}

const timestamptz = (moment: string) => sql`${moment}::text::timestamptz`;

export const within = (column: PgColumn, { since, until }: Partial<Within>) =>
  and(given(column, since && timestamptz(since), gte), given(column, until && timestamptz(until), lt));

/** The same by the time in an id. Postgres computes each bound once, and leaves out the months beyond it. */
export const idWithin = (column: PgColumn, prefix: string, { since, until }: Within) => {
  const bound = (moment: string) => sql`(select ${prefix}::text || ulid_floor(${timestamptz(moment)}))`;
  return and(gte(column, bound(since)), given(column, until && bound(until), lt));
};

export const isExpired = (expiresAt: PgColumn) =>
  sql<boolean>`coalesce(${expiresAt} <= service_now(), false)`;

export const choice = <const Words extends [string, ...string[]]>(name: string, words: Words) =>
  text(name, { enum: words }).notNull();

/** Money in integer pence, read as a safe integer. */
export const pence = (name: string) => bigint(name, { mode: 'number' });

export const rowNumber = (name: string) =>
  bigint(name, { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity();

export const day = (name: string) => date(name, { mode: 'string' });

export const moment = (name: string) => timestamp(name, { withTimezone: true, mode: 'date' });

/** The time of the database. Only test databases replace the function behind it. */
export const serviceNow = sql`service_now()`;

export const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

/** JSON as text, because a check in Postgres costs a third of an insert. A text is written as it is. */
export const jsonText = customType<{ data: unknown; driverData: string }>({
  dataType: () => 'text',
  toDriver: (value) => (typeof value === 'string' ? value : JSON.stringify(value)),
  fromDriver: (text) => JSON.parse(text) as unknown,
});

export const keyColumns = () => ({
  environment: text('environment', { enum: ['sandbox', 'live'] }).notNull(),
  /** SHA-256 of the whole key. */
  keyHash: bytea('key_hash').notNull().unique(),
  lastFour: text('last_four').notNull(),
  state: choice('state', ['active', 'inactive', 'revoked']).default('active'),
  /** From this moment on it answers 401; null: never. Rotation sets it on the old key. */
  expiresAt: moment('expires_at'),
  createdAt: moment('created_at').notNull().default(serviceNow),
  revokedAt: moment('revoked_at'),
  replacedBy: text('replaced_by'),
});
