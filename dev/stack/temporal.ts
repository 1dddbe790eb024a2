import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '../../runtime/config/config';
import type { prepareExternalTemporal } from '../../runtime/temporal/namespace';
import { adviceOn } from '../failure';
import { stackPorts } from '../ports';
import { findTemporal, startTemporal, type RunningTemporal } from '../temporal';

export interface StackTemporal {
  readonly address: string;
  /** Null: it is not ours. */
  readonly server: Pick<RunningTemporal, 'uiUrl' | 'stop' | 'kill'> | null;
}

/** Pause before a server that ended by itself is started again. */
const RESTART_MS = 2_000;

interface Tell {
  /** A line about the step under way. */
  readonly note: (text: string) => void;
  /** A line at any other time. */
  readonly announce: (text: string) => void;
  readonly signal: AbortSignal | undefined;
}

/** Where the embedded one keeps its state. */
export function temporalDir(dataDir: string): string {
  return join(dataDir, 'temporal');
}

/**
 * Brings Temporal up, or gets somebody else's ready.
 * @returns undefined when there is none and none will come: the rest of the stack works, and a person has been told.
 */
export async function tryTemporal(
  config: Config,
  external: ReturnType<typeof prepareExternalTemporal>,
  dataDir: string,
  tell: Tell,
): Promise<StackTemporal | undefined> {
  const { note, signal } = tell;
  try {
    if (external) {
      await external.prepare();
      return { address: external.address, server: null };
    }
    const executable = await findTemporal({ onProgress: note, signal });
    const ports = stackPorts(config.STACK_PORT);
    const namespace = config.TEMPORAL_NAMESPACE ?? 'default';
    const start = (onProgress: (text: string) => void) =>
      startTemporal({
        executable,
        dataDir: temporalDir(dataDir),
        port: ports.temporal,
        uiPort: ports.temporalPage,
        namespace,
        onProgress,
        signal,
      });
    const server = await start(note);
    return { address: server.address, server: keepRunning(server, () => start(() => undefined), tell) };
  } catch (error) {
    if (signal?.aborted) throw error;
    note(
      'WARNING: no Temporal, so no webhooks: they wait in Postgres until it is there. Quotes work without.',
    );
    if (external) note(`TEMPORAL_ADDRESS is ${external.address}.`);
    for (const line of explain(error).split('\n')) note(line);
    // Somebody else's may come later: the worker keeps trying.
    return external && { address: external.address, server: null };
  }
}

/** Starts the server again when it ends by itself: quotes go on without it, and its state is in its file. */
function keepRunning(
  first: RunningTemporal,
  start: () => Promise<RunningTemporal>,
  { announce, signal }: Tell,
): NonNullable<StackTemporal['server']> {
  let current = first;
  let stopping = false;
  const watch = async () => {
    while (!stopping && !signal?.aborted) {
      await current.exited;
      if (stopping || signal?.aborted) return;
      announce(
        `Temporal has ended by itself (its log is ${current.logFile}); starting it again. Webhooks wait meanwhile.`,
      );
      await sleep(RESTART_MS);
      if (stopping || signal?.aborted) return;
      try {
        current = await start();
        announce('Temporal is back.');
      } catch (error) {
        announce(`Temporal does not start: ${explain(error)}`);
      }
    }
  };
  const watching = watch();
  return {
    uiUrl: first.uiUrl,
    kill: () => {
      stopping = true;
      current.kill();
    },
    stop: async () => {
      stopping = true;
      await current.stop();
      await watching;
      // One that was being started when the stop came.
      await current.stop();
    },
  };
}

function explain(error: unknown): string {
  return adviceOn(error) ?? (error instanceof Error ? error.message : String(error));
}
