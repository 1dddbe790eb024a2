import type { DbOrTransaction, Sql } from './connect';

/** Where a read may run: the postgres.js client (prepared, one round trip), drizzle, or a transaction. */
export type Reader = Sql | DbOrTransaction;

/** Values that the texts of this folder are run with. */
export type Parameter = string | number | boolean | null | Buffer | readonly string[];

/** Milliseconds since 1970: a moment arrives as text or as a Date depending on who asks, a number always the same. */
export const msText = (moment: string) => `(extract(epoch from ${moment}) * 1000)::float8`;

const camel = (name: string) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

/** Columns of `t` under their names in the code; moments in milliseconds, for `rowsOf`. */
export const columns = (t: string, names: readonly string[]): string =>
  names
    .map(
      (name) =>
        `${/_(?:at|since)$/.test(name) ? msText(`${t}.${name}`) : `${t}.${name}`} as "${camel(name)}"`,
    )
    .join(', ');

/** Runs a text, as runPrepared does; milliseconds in columns named after a moment (`createdAt`, `failingSince`) become moments. */
export async function rowsOf<Row>(
  reader: Reader,
  text: string,
  parameters: readonly Parameter[],
): Promise<Row[]> {
  const rows = await runPrepared<object>(reader, text, parameters);
  return rows.map((row) => {
    const entries = Object.entries(row).map(([name, value]) =>
      /(?:At|Since)$/.test(name) && typeof value === 'number' ? [name, new Date(value)] : [name, value],
    );
    return Object.fromEntries(entries) as Row;
  });
}

/**
 * Runs a constant text with `$1`-style parameters as a named prepared statement: one round trip, parsed once for each connection.
 * What drizzle runs itself is never prepared: it is parsed and planned each time, and takes two round trips.
 */
export async function runPrepared<Row>(
  reader: Reader,
  text: string,
  parameters: readonly Parameter[] = [],
): Promise<Row[]> {
  const client = typeof reader === 'function' ? reader : clientOf(reader);
  const rows = await client.unsafe(text, parameters as never[], { prepare: true });
  return [...rows] as unknown as Row[];
}

/** The row of a statement that always returns one. */
export async function oneRow<Row>(
  reader: Reader,
  text: string,
  parameters: readonly Parameter[] = [],
): Promise<Row> {
  const [row] = await runPrepared<Row>(reader, text, parameters);
  if (row === undefined) throw new Error(`no row came back from: ${text.trim().slice(0, 100)}`);
  return row;
}

/** What drizzle runs its own statements on: the pool, or the connection of the transaction. */
function clientOf(reader: DbOrTransaction): Sql {
  return (reader._.session as unknown as { readonly client: Sql }).client;
}
