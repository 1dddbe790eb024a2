import { CommanderError } from 'commander';
import { Refused } from '../db/refused';
import { endedConnection } from '../db/postgres/driver/server-socket';
import { ImportRefused } from './import/rows';

export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;

export class DatabaseUnreachable extends Error {
  override readonly name = 'DatabaseUnreachable';
}

export class TemporalUnreachable extends Error {
  override readonly name = 'TemporalUnreachable';

  constructor(of: { readonly address: string; readonly why: string; readonly check: string }) {
    super(`Temporal cannot be reached at ${of.address} (${of.why}): check ${of.check}.`);
  }
}

/** Codes of Node and postgres.js for a server that is away, and of Postgres (SQLSTATE) for one that refuses the login. */
const UNREACHABLE =
  /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT|EACCES|EPIPE|CONNECT_TIMEOUT|CONNECTION_(CLOSED|ENDED|DESTROYED)|57P0[1-3]|53300|28000|28P01|3D000|08...)$/;
const NOT_MIGRATED = new Set(['42P01', '42883']);

/** An error as it is printed: with a stable word for scripts, without a stack, and without the parameters of a statement. */
export function toFailure(error: unknown) {
  const failure = (exitCode: number, code: string, message = (error as Error).message) => ({
    exitCode,
    code,
    message,
    faults: error instanceof ImportRefused ? error.faults : undefined,
  });
  if (error instanceof ImportRefused) return failure(EXIT.failed, 'faults');
  // An id that does not exist was most likely mistyped.
  if (error instanceof Refused)
    return failure(error.kind === 'not_found' ? EXIT.usage : EXIT.failed, error.kind);
  if (error instanceof DatabaseUnreachable) return failure(EXIT.unreachable, 'database_unreachable');
  if (error instanceof TemporalUnreachable) return failure(EXIT.unreachable, 'temporal_unreachable');
  if (error instanceof CommanderError)
    return failure(EXIT.usage, 'usage', error.message.replace(/^error: /, ''));
  const cause = rootCause(error);
  const { code: given } = (cause ?? {}) as { code?: unknown };
  const code = typeof given === 'string' ? given : '';
  const message = cause instanceof Error && cause.message !== '' ? cause.message : code || 'unknown error';
  if (UNREACHABLE.test(code) || endedConnection(cause))
    return failure(
      EXIT.unreachable,
      'database_unreachable',
      `The database cannot be reached: ${message.replace('write CONNECT_TIMEOUT', 'no answer from')}`,
    );
  if (!NOT_MIGRATED.has(code)) return failure(EXIT.failed, 'failed', message);
  return failure(
    EXIT.failed,
    'not_migrated',
    'The database has no tables of this service, or older ones: start the service once, it migrates.',
  );
}

/** drizzle wraps errors in one whose message contains the parameters; Node wraps those of several addresses in one. */
function rootCause(error: unknown): unknown {
  const { cause, errors } = (error ?? {}) as { cause?: unknown; errors?: unknown };
  const inner: unknown = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
  return inner === undefined || inner === null ? error : rootCause(inner);
}
