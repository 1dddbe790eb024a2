import type { Logger } from 'pino';
import { loginRights } from '../../db/postgres/rights';
import type { Sql } from '../../db/postgres/connect';
import { withTimeout } from '../../timing/timeout';
import { roleOf, type Process } from '../../db/postgres/roles';

const WHERE = 'docs/operations/install.md, "Logins of the database"';

/**
 * Logs once how the database login of a process differs from what the process needs. It says nothing while Postgres
 * cannot be reached: a process starts without it.
 */
export async function reportLogin(
  sql: Sql,
  process: Process,
  { logger, production, timeoutMs }: { logger: Logger; production: boolean; timeoutMs: number },
): Promise<void> {
  const found = await withTimeout(loginRights(sql, process), timeoutMs, 'rights of the login').catch(
    () => null,
  );
  if (found === null) return;
  const { login, enough, surplus } = found;
  if (!enough)
    logger.error(
      { login },
      `the database login may not do what this process has to: grant ${roleOf(process)} to it (${WHERE})`,
    );
  if (surplus.length > 0)
    logger[production ? 'warn' : 'info'](
      { login, surplus },
      `the database login is not separated from the other processes: ${surplus.join('; ')} (${WHERE})`,
    );
}
