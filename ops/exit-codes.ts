import { CommanderError } from 'commander';
import { Refused } from '../db/refused';
import { endedConnection } from '../db/postgres/driver/server-socket';
import { ImportRefused, type Fault } from './import/rows';

/** What the process ends with (docs/operations/every-day.md, "The ops command"). */
export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;

/** No address of a database is known. */
export class DatabaseUnreachable extends Error {
  override readonly name = 'DatabaseUnreachable';
}

/** Temporal is not there, or lets nobody in. */
export class TemporalUnreachable extends Error {
  override readonly name = 'TemporalUnreachable';

  constructor({ address, why }: { readonly address: string; readonly why: string }) {
    super(`Temporal cannot be reached at ${address} (${why}): check TEMPORAL_ADDRESS.`);
  }
}

/** An error as it is told: without a stack, and without the parameters of a statement. */
export interface Failure {
  readonly exitCode: number;
  /** Stable word for scripts. */
  readonly code: string;
  readonly message: string;
  readonly faults?: readonly Fault[];
}

/** Codes of Node and postgres.js for a server that is not there, and of Postgres (SQLSTATE) for one that lets nobody in. */
const UNREACHABLE =
  /^(ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOENT|EACCES|EPIPE|CONNECT_TIMEOUT|CONNECTION_(CLOSED|ENDED|DESTROYED)|57P0[1-3]|53300|28000|28P01|3D000|08...)$/;

/** Says what happened, by the kind of error. */
export function toFailure(error: unknown): Failure {
  if (error instanceof ImportRefused) {
    return { exitCode: EXIT.failed, code: 'faults', message: error.message, faults: error.faults };
  }
  if (error instanceof Refused) {
    // What was named does not exist: most likely it was mistyped.
    const exitCode = error.reason === 'not_found' ? EXIT.usage : EXIT.failed;
    return { exitCode, code: error.reason, message: error.message };
  }
  if (error instanceof DatabaseUnreachable) {
    return { exitCode: EXIT.unreachable, code: 'database_unreachable', message: error.message };
  }
  if (error instanceof TemporalUnreachable) {
    return { exitCode: EXIT.unreachable, code: 'temporal_unreachable', message: error.message };
  }
  if (error instanceof CommanderError) {
    return { exitCode: EXIT.usage, code: 'usage', message: error.message.replace(/^error: /, '') };
  }
  const cause = rootCause(error);
  const { code: given } = (cause ?? {}) as { code?: unknown };
  const code = typeof given === 'string' ? given : '';
  const message = cause instanceof Error && cause.message !== '' ? cause.message : code || 'unknown error';
  if (UNREACHABLE.test(code) || endedConnection(cause)) {
    return {
      exitCode: EXIT.unreachable,
      code: 'database_unreachable',
      message: `The database cannot be reached: ${message}`,
    };
  }
  if (code === '42P01' || code === '42883') {
    const hint =
      'The database has no tables of this service, or older ones: start the service once, it migrates.';
    return { exitCode: EXIT.failed, code: 'not_migrated', message: hint };
  }
  return { exitCode: EXIT.failed, code: 'failed', message };
}

/** drizzle wraps errors in one whose message holds the parameters; Node wraps those of several addresses in one. */
function rootCause(error: unknown): unknown {
  let current = error;
  for (let depth = 0; depth < 10; depth++) {
    const { cause, errors } = (current ?? {}) as { cause?: unknown; errors?: unknown };
    const inner: unknown = cause ?? (Array.isArray(errors) ? errors[0] : undefined);
    if (inner === undefined || inner === null) return current;
    current = inner;
  }
  return current;
}
