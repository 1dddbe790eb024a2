import { userInfo } from 'node:os';
import { connectDatabase } from '../db/connect';
import { runOps } from '../ops/program';
import { readOpsConfig } from '../runtime/config';

/** A large import takes seconds; nothing of ours takes a minute. */
const STATEMENT_TIMEOUT_MS = 60_000;

/** Name of the operating-system user; a container may run as one that has none. */
function currentUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}

// `ops … | head` closes the pipe early; what was done stays done.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

async function main(): Promise<void> {
  const exitCode = await runOps(
    {
      connect: () =>
        connectDatabase({
          url: readOpsConfig().databaseUrl,
          poolSize: 1,
          applicationName: 'ops',
          statementTimeoutMs: STATEMENT_TIMEOUT_MS,
        }),
      out: (text) => process.stdout.write(text),
      err: (text) => process.stderr.write(text),
      stdin: process.stdin,
      actor: currentUser(),
      now: () => new Date(),
    },
    process.argv.slice(2),
  );
  // Not process.exit(): what was printed into a pipe must get out first.
  process.exitCode = exitCode;
}

void main();
