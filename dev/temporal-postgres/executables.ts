import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StackFailure, stoppedWhileStarting } from '../failure';
import { inTurn } from '../locks';
import { goInstall, openToolsFolder, runProgram } from '../temporal/tools';

/** What docker-compose.yml runs. */
export const SERVER_VERSION = '1.32.2';

const MODULE = 'go.temporal.io/server';
const DRAFT = 'new-server-';

export interface ServerExecutables {
  /** All services in one program. */
  readonly server: string;
  /** temporal-sql-tool: creates databases and their schema, which it carries. */
  readonly sqlTool: string;
}

export interface Obtaining {
  /** Where what was built is kept; by default the user's cache folder. */
  readonly toolsDir?: string | undefined;
  readonly onProgress: (message: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Default {@link SERVER_VERSION}. */
  readonly version?: string;
}

/**
 * Finds Temporal's server and its schema tool: as kept from an earlier start, else built with Go.
 * @throws StackFailure when they cannot be built.
 */
export async function findTemporalServer(options: Obtaining): Promise<ServerExecutables> {
  const { onProgress, signal, version = SERVER_VERSION } = options;
  const tools = await openToolsFolder(options.toolsDir);
  const folder = join(tools.path, `temporal-server-${version}-${process.platform}-${process.arch}`);
  const executables = { server: join(folder, 'server'), sqlTool: join(folder, 'sql') };
  if (await work(executables)) return executables;
  const what = "which gets Temporal's server";
  return inTurn(`${folder}.lock`, { what, onProgress, signal }, async () => {
    if (await work(executables)) return executables;
    // What a killed build left: the lock is ours.
    for (const name of await readdir(tools.path))
      if (name.startsWith(DRAFT)) await rm(join(tools.path, name), { recursive: true, force: true });
    const draft = await mkdtemp(join(tools.path, DRAFT));
    try {
      await goInstall({
        packages: ['cmd/server', 'cmd/tools/sql'].map((path) => `${MODULE}/${path}@v${version}`),
        what: `Temporal's server ${version} with Go: about 2 minutes on two idle cores`,
        folder: draft,
        tools,
        onProgress,
        signal,
      });
      await rm(folder, { recursive: true, force: true });
      await rename(draft, folder);
      return executables;
    } catch (error) {
      if (signal?.aborted) throw stoppedWhileStarting();
      throw new StackFailure(
        `Temporal's server cannot be built here: ${(error as Error).message}\nIt needs Go and its module proxy.`,
      );
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  });
}

async function work({ server, sqlTool }: ServerExecutables): Promise<boolean> {
  try {
    for (const program of [server, sqlTool]) await runProgram(program, ['--version'], { timeoutMs: 20_000 });
    return true;
  } catch {
    return false;
  }
}
