import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { runProgram } from './run-program';

/** Later versions carry a `replace` in their go.mod, which `go install` refuses. */
export const CLI_VERSION = '1.5.1';

const PACKAGE = `github.com/temporalio/cli/cmd/temporal@v${CLI_VERSION}`;
/** For the first bytes; a machine without internet is found out within it. */
const CONNECT_LIMIT_MS = 10_000;
const DOWNLOAD_LIMIT_MS = 300_000;
/** 3 to 5 minutes on two idle cores, everything fetched anew; 9 were seen on busy ones. */
const BUILD_LIMIT_MS = 1_200_000;
const STILL_BUILDING_MS = 30_000;

export interface Obtaining {
  /** Empty, ours alone. `temporal` appears in it. */
  readonly folder: string;
  readonly onProgress: (message: string) => void;
  readonly signal: AbortSignal | undefined;
}

/**
 * The ready-made binary from where the SDK gets its own, which is asked for a fixed version instead of its default.
 * @param site `https://temporal.download`, or a stand-in.
 * @throws when it cannot be had, after 10 s at most when nobody answers.
 */
export async function downloadCli(site: string, obtaining: Obtaining): Promise<void> {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const url = `${site}/cli/archive/v${CLI_VERSION}?platform=${process.platform}&arch=${arch}`;
  const connecting = new AbortController();
  const timer = setTimeout(() => connecting.abort(new Error('no answer within 10 s')), CONNECT_LIMIT_MS);
  const signals = [connecting.signal, ...(obtaining.signal ? [obtaining.signal] : [])];
  const answer = await fetch(url, { signal: AbortSignal.any(signals) }).finally(() => clearTimeout(timer));
  if (!answer.ok || !answer.body) throw new Error(`${site} answered ${answer.status}`);
  obtaining.onProgress(`downloading Temporal ${CLI_VERSION}`);
  const { folder, signal } = obtaining;
  await runProgram('tar', ['-xzf', '-', '-C', folder, 'temporal'], {
    input: Readable.fromWeb(answer.body),
    timeoutMs: DOWNLOAD_LIMIT_MS,
    signal,
  });
}

/**
 * Builds the CLI, web page included, with the Go on this machine.
 * @param homeWritable false lets Go have its caches in `goFolder`, which is deleted at the end.
 * @throws when there is no Go, or it fails.
 */
export async function buildCli(obtaining: Obtaining, goFolder: string, homeWritable: boolean): Promise<void> {
  const { folder, onProgress, signal } = obtaining;
  const go = await findGo();
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1_000);
  onProgress(`building Temporal ${CLI_VERSION} with Go: 3 to 5 minutes on two idle cores, this once`);
  const ticker = setInterval(() => onProgress(`still building (${seconds()} s)`), STILL_BUILDING_MS);
  // `env`, so that Go keeps what the user has set (a proxy, say). With GOOS or GOARCH it would refuse GOBIN.
  const environment = ['-u', 'GOOS', '-u', 'GOARCH', `GOBIN=${folder}`];
  if (!homeWritable) {
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
    const install = [go, 'install', '-trimpath', '-ldflags=-s -w', PACKAGE];
    await runProgram('env', [...environment, ...install], { cwd: folder, timeoutMs: BUILD_LIMIT_MS, signal });
  } finally {
    clearInterval(ticker);
    // 3 GB that nobody needs again.
    if (!homeWritable) await rm(goFolder, { recursive: true, force: true });
  }
  onProgress(`built in ${seconds()} s`);
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
