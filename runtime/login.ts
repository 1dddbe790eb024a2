import type { Logger } from 'pino';
import type { Sql } from '../db/postgres/connect';
import { loginRights } from '../db/postgres/rights';
import { roleOf, type Process } from '../db/postgres/roles';
import { withTimeout } from '../timing/timing';

const WHERE = 'docs/operations/production.md, "Logins of the database"';

/** Logs how the login of a process differs from what it needs; nothing while Postgres is away. */
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
