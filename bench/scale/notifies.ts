import { readFileSync } from 'node:fs';
import type { Sql } from '../../db/postgres/connect';
import { pause } from '../harness/bench';

/**
 * Counts the transactions in which a NOTIFY and a change of a table come together, by the server's log: every statement with the
 * transaction that it belongs to. Triggers are not in the log; these tables have none (test/db/notifications/one-writer.test.ts).
 * @param task makes the transactions.
 */
export async function countNotifies(
  sql: Sql,
  logFile: string,
  task: () => Promise<unknown>,
): Promise<{ readonly transactions: number; readonly stored: number; readonly notifiesInside: number }> {
  const set = async (what: 'all' | 'none') => {
    await sql.unsafe(`alter system set log_statement = '${what}'`);
    await sql.unsafe(`alter system set log_line_prefix = 'virtual transaction %v: '`);
    await sql`select pg_reload_conf()`;
    // The sessions read it before their next statement.
    await pause(300);
  };
  const length = readFileSync(logFile).length;
  await set('all');
  await task();
  await set('none');
  const statements = new Map<string, string>();
  const log = readFileSync(logFile).subarray(length).toString();
  for (const entry of log.split('virtual transaction ')) {
    const [, id, what] = /^(\d+\/\d+): LOG: {2}((?:statement|execute)[\s\S]*)/.exec(entry) ?? [];
    if (id !== undefined) statements.set(id, `${statements.get(id) ?? ''}\n${what}`);
  }
  const all = [...statements.values()];
  const changes = all.filter((text) => /\b(insert into|update|delete from)\b/i.test(text));
  const inside = changes.filter((text) => /\b(pg_notify|notify)\b/i.test(text));
  return { transactions: all.length, stored: changes.length, notifiesInside: inside.length };
}
