import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from './run-program';
import type { ToolsFolder } from './tools-folder';

/** 2 to 5 minutes on two idle cores, everything fetched anew; 9 were seen on busy ones. */
const BUILD_LIMIT_MS = 1_200_000;
const FIGURE_MS = 1_000;

export interface GoInstall {
  /** `path@version`, all of one module. */
  readonly packages: readonly string[];
  /** What is built, and how long that takes, for people. */
  readonly what: string;
  /** Gets the programs. */
  readonly folder: string;
  readonly tools: ToolsFolder;
  /** `moving`: replaces the last one that moved. */
  readonly onProgress: (message: string, moving?: boolean) => void;
  /** About how many packages are compiled where nothing is cached. */
  readonly packageCount?: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * Builds programs with the Go on this machine. Where the home folder cannot be written, Go has its caches in the tools
 * folder, and they are deleted at the end.
 * @throws when there is no Go, or it fails.
 */
export async function goInstall({
  packages,
  what,
  folder,
  tools,
  onProgress,
  packageCount,
  signal,
}: GoInstall): Promise<void> {
  const go = await findGo();
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1_000);
  onProgress(`building ${what}, this once`);
  const counts = { fetched: 0, compiled: 0 };
  const onLine = (line: string) => (counts[line.startsWith('go: ') ? 'fetched' : 'compiled'] += 1);
  const total = packageCount === undefined ? '' : ` of about ${packageCount}`;
  const figure = () =>
    counts.compiled === 0
      ? `${counts.fetched || 'no'} modules fetched yet, ${seconds()} s`
      : `${counts.compiled}${total} packages compiled, ${seconds()} s`;
  const ticker = setInterval(() => onProgress(figure(), true), FIGURE_MS);
  // `env`, so that Go keeps what the user has set (a proxy, say). With GOOS or GOARCH it would refuse GOBIN.
  const environment = ['-u', 'GOOS', '-u', 'GOARCH', `GOBIN=${folder}`, ...(await toolchain(go))];
  const goFolder = join(tools.path, 'go');
  if (!tools.homeWritable) {
    await mkdir(goFolder, { recursive: true });
    environment.push(
      `HOME=${goFolder}`,
      `GOPATH=${join(goFolder, 'path')}`,
      `GOCACHE=${join(goFolder, 'build')}`,
    );
    // Its module cache is read-only otherwise, and then hard to delete.
    environment.push('GOFLAGS=-modcacherw');
  }
  try {
    const install = [go, 'install', '-v', '-trimpath', '-ldflags=-s -w', ...packages];
    const limits = { cwd: folder, timeoutMs: BUILD_LIMIT_MS, signal };
    await runProgram('env', [...environment, ...install], { ...limits, onLine });
  } finally {
    clearInterval(ticker);
    // 3 GB that nobody needs again.
    if (!tools.homeWritable) await rm(goFolder, { recursive: true, force: true });
  }
  onProgress(`built in ${seconds()} s`);
}

/**
 * Temporal's server wants a newer Go than many machines have; Go then fetches that by itself, except where a distribution has
 * switched it off. What the user has chosen stays.
 */
async function toolchain(go: string): Promise<string[]> {
  // Go before 1.23 does not know the flag.
  const chosen = await runProgram(go, ['env', '-changed', 'GOTOOLCHAIN'], { timeoutMs: 10_000 }).catch(
    () => '',
  );
  return chosen.trim() === '' ? ['GOTOOLCHAIN=auto'] : [];
}

/** Its installer puts it where the PATH of many accounts does not lead. */
async function findGo(): Promise<string> {
  for (const go of ['go', '/usr/local/go/bin/go']) {
    try {
      await runProgram(go, ['version'], { timeoutMs: 10_000 });
      return go;
    } catch {
      // The next.
    }
  }
  throw new Error('there is no Go');
}
