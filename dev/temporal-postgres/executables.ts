import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { StackFailure } from '../failure';
import { inTurn } from '../locks';
import { goInstall, runProgram, toolsFolder } from '../temporal/tools';

/** What docker-compose.yml runs. */
export const SERVER_VERSION = '1.32.2';

const MODULE = 'go.temporal.io/server';
const DRAFT = 'new-server-';

interface ServerExecutables {
  /** All services in one program. */
  readonly server: string;
  /** temporal-sql-tool: creates databases and their schema, which it carries. */
  readonly sqlTool: string;
}

export interface Obtaining {
  readonly onProgress: (message: string) => void;
}

/**
 * Finds Temporal's server and its schema tool: as kept from an earlier start, else built with Go.
 * @throws StackFailure when they cannot be built.
 */
export async function findTemporalServer({ onProgress }: Obtaining): Promise<ServerExecutables> {
  const tools = await toolsFolder();
  const folder = join(tools, `temporal-server-${SERVER_VERSION}-${process.platform}-${process.arch}`);
  const executables = { server: join(folder, 'server'), sqlTool: join(folder, 'sql') };
  if (await work(executables)) return executables;
  const what = "which gets Temporal's server";
  return inTurn(`${folder}.lock`, { what, onProgress }, async () => {
    if (await work(executables)) return executables;
    // What a killed build left: the lock is ours.
    for (const name of await readdir(tools))
      if (name.startsWith(DRAFT)) await rm(join(tools, name), { recursive: true, force: true });
    const draft = await mkdtemp(join(tools, DRAFT));
    try {
      await goInstall({
        packages: ['cmd/server', 'cmd/tools/sql'].map((path) => `${MODULE}/${path}@v${SERVER_VERSION}`),
        what: `Temporal's server ${SERVER_VERSION} with Go: about 2 minutes on two idle cores`,
        folder: draft,
        onProgress,
      });
      await rm(folder, { recursive: true, force: true });
      await rename(draft, folder);
      return executables;
    } catch (error) {
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
