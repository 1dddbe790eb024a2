import type { Sql } from '../../db/postgres/connect';

/**
 * Freezes this process for longer than a silent connection is kept, so that it finds two timers due at once: first its connection is
 * given up, then it is used.
 * @param quietMs after which a silent connection of `sql` is closed (db/postgres/connect.ts)
 * @returns whether a statement that is made just then is answered or refused
 */
export async function statementAfterFreeze(sql: Sql, quietMs: number): Promise<'answered' | 'refused'> {
  await sql`select 1`;
  const made = new Promise<'answered' | 'refused'>((resolve) => {
    const make = () => {
      sql`select 1`.then(
        () => resolve('answered'),
        () => resolve('refused'),
      );
    };
    setTimeout(make, quietMs + 50);
  });
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, quietMs + 500);
  return made;
}
