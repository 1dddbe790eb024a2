import { sql, type SQL } from 'drizzle-orm';
import type { DbOrTransaction, Sql } from './connect';

/** Where a read may run: the postgres.js client (prepared, one round trip), drizzle, or a transaction. */
export type Reader = Sql | DbOrTransaction;

/** Values that the texts of this folder are run with. */
export type Parameter = string | number | boolean | null | Buffer | readonly string[];

/** Milliseconds since 1970: a moment arrives as text or as a Date depending on who asks, a number always the same. */
export const msText = (moment: string) => `(extract(epoch from ${moment}) * 1000)::float8`;

/**
 * Runs a constant text with `$1`-style parameters. Through the client it is a named prepared statement and costs one
 * round trip; drizzle never prepares, and there postgres.js asks for the parameter types first (two round trips).
 */
export async function runPrepared<Row>(
  reader: Reader,
  text: string,
  parameters: readonly Parameter[] = [],
): Promise<Row[]> {
  const rows =
    typeof reader === 'function'
      ? await reader.unsafe(text, parameters as never[], { prepare: true })
      : await reader.execute(asDrizzle(text, parameters));
  return [...rows] as unknown as Row[];
}

function asDrizzle(text: string, parameters: readonly Parameter[]): SQL {
  const parts = text.split(/\$(\d+)/);
  return sql.join(
    parts.map((part, place) =>
      place % 2 === 0 ? sql.raw(part) : sql`${sql.param(parameters[Number(part) - 1])}`,
    ),
  );
}
