import { join } from 'node:path';
import { StackFailure } from '../failure';
import { findTemporal, startTemporal, type RunningTemporal } from '../temporal';
import type { TemporalChoice } from './types';

export interface StackTemporal {
  readonly address: string;
  /** Null: it is not ours. */
  readonly server: RunningTemporal | null;
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
  choice: TemporalChoice,
  dataDir: string,
  tell: { readonly note: (text: string) => void; readonly signal: AbortSignal | undefined },
): Promise<StackTemporal | undefined> {
  const { note, signal } = tell;
  try {
    if (choice.external) {
      await choice.external.prepare();
      return { address: choice.external.address, server: null };
    }
    const executable = await findTemporal({ toolsDir: choice.toolsDir, onProgress: note, signal });
    const { port, uiPort, namespace } = choice;
    const server = await startTemporal({
      executable,
      dataDir: temporalDir(dataDir),
      port,
      uiPort,
      namespace,
      onProgress: note,
      signal,
    });
    return { address: server.address, server };
  } catch (error) {
    if (signal?.aborted) throw error;
    const { external } = choice;
    note(
      'WARNING: no Temporal, so no webhooks: they wait in Postgres until it is there. Quotes work without.',
    );
    if (external) note(`TEMPORAL_ADDRESS is ${external.address}.`);
    for (const line of explain(error).split('\n')) note(line);
    // Somebody else's may come later: the worker keeps trying.
    return external && { address: external.address, server: null };
  }
}

function explain(error: unknown): string {
  if (error instanceof StackFailure) return error.message;
  return error instanceof Error ? error.message : String(error);
}
