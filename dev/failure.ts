import { ConfigError } from '../runtime/config/config';

/** The stack cannot start or run, and the message alone tells a person what to do: it is printed without a trace. */
export class StackFailure extends Error {
  override readonly name = 'StackFailure';
}

export const stoppedWhileStarting = () => new StackFailure('Stopped while starting.');

const DISK_FULL = /ENOSPC|EDQUOT|EFBIG|no space left on device|disk quota exceeded|database or disk is full/i;
const SQLSTATE_DISK_FULL = '53100';

/** What is wrong with a database that DATABASE_URL names, by SQLSTATE or error code. */
const DATABASE: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ENOTFOUND: 'there is no such host',
  EAI_AGAIN: 'the name of the host cannot be looked up',
  EHOSTUNREACH: 'there is no way to that host',
  CONNECT_TIMEOUT: 'there is no answer',
  '28P01': 'it refuses the password',
  '28000': 'it refuses this login',
  '3D000': 'there is no such database',
  '42501': 'this login may not do what a migration has to',
};

interface Fault {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly path?: unknown;
}

/** An error and its causes, the outermost first. */
function chainOf(error: unknown): Fault[] {
  if (typeof error !== 'object' || error === null) return [];
  return [error, ...chainOf((error as { cause?: unknown }).cause)];
}

/** What is wrong and what to do, for an error that a person can correct; undefined for every other. */
export function adviceOn(error: unknown): string | undefined {
  for (const at of chainOf(error)) {
    const { code, path } = at;
    if (DISK_FULL.test(String(at.message)) || code === SQLSTATE_DISK_FULL)
      return 'The disk is full. Make room (the folder DATA_DIR names and the one for temporary files need it), then start again.';
    if ((code === 'EACCES' || code === 'EPERM' || code === 'EROFS') && typeof path === 'string')
      return `This user may not write ${path} (${code}). Start as the user who owns the data, or set DATA_DIR to another folder.`;
    if (at instanceof ConfigError)
      return `${at.message}\nCorrect them as docs/settings.md says, then start again.`;
  }
  return error instanceof StackFailure ? error.message : undefined;
}

/** The same for a database that DATABASE_URL names and that could not be migrated. The password is not repeated. */
export function databaseAdvice(error: unknown, databaseUrl: string): string | undefined {
  for (const { code } of chainOf(error)) {
    const why = DATABASE[String(code)];
    if (why === undefined) continue;
    const name = URL.canParse(databaseUrl) ? new URL(databaseUrl) : undefined;
    return `The database ${name === undefined ? 'of DATABASE_URL' : name.host + name.pathname} cannot be used: ${why}. Correct DATABASE_URL or the server, or leave it out for an embedded one.`;
  }
  return undefined;
}
