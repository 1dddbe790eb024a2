import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { EnvHttpProxyAgent, fetch } from 'undici';
import { StackFailure, stoppedWhileStarting } from '../failure';
import { inTurn } from '../locks';
import { goInstall, openToolsFolder, runProgram, type ToolsFolder } from './tools';

/** Later versions need a nested module that no module proxy serves, so `go install` cannot build them. */
const BUILT_CLI_VERSION = '1.5.1';
const PACKAGE = `github.com/temporalio/cli/cmd/temporal@v${BUILT_CLI_VERSION}`;
/** For the first bytes; a machine without internet is found out within it. */
const CONNECT_LIMIT_MS = 10_000;
const DOWNLOAD_LIMIT_MS = 300_000;
/** Not the beginning of what another build calls its draft: it may be under way. */
const DRAFT = 'new-cli-';

interface ExecutableOptions {
  /** Where what was built or downloaded is kept; by default the user's cache folder. */
  readonly toolsDir?: string | undefined;
  readonly onProgress?: (message: string) => void;
  readonly signal?: AbortSignal | undefined;
  /** Where ready-made binaries are; default https://temporal.download. */
  readonly downloadSite?: string;
  /** Leave the one on the PATH alone. */
  readonly ignorePath?: boolean;
}

/**
 * Finds Temporal's command line, which holds the dev server: on the PATH; as kept from an earlier start, the newest first; by
 * download, the newest; built with Go. Processes that look for it at once wait for one another.
 * @returns its absolute path.
 * @throws StackFailure naming every way that was tried, and why it failed.
 */
export async function findTemporal(options: ExecutableOptions = {}): Promise<string> {
  const onPath = options.ignorePath ? undefined : await findOnPath();
  if (onPath !== undefined) return onPath;
  const tools = await openToolsFolder(options.toolsDir);
  const kept = await findKept(tools);
  if (kept !== undefined) return kept;
  const what = "which gets Temporal's dev server";
  return inTurn(
    join(tools.path, `temporal-cli${MACHINE}.lock`),
    { ...options, what },
    async () => (await findKept(tools)) ?? obtain(tools, options),
  );
}

/** Homes are shared between machines of different kinds. */
const MACHINE = `-${process.platform}-${process.arch}`;

const folderOf = (version: string) => `temporal-cli-${version}${MACHINE}`;

/** The newest that works, of those which earlier starts have kept. */
async function findKept(tools: ToolsFolder): Promise<string | undefined> {
  const folders = (await readdir(tools.path)).filter(
    (name) => name.startsWith('temporal-cli-') && name.endsWith(MACHINE),
  );
  const byNumber = new Intl.Collator('en', { numeric: true });
  for (const folder of folders.toSorted((a, b) => byNumber.compare(b, a))) {
    const file = join(tools.path, folder, 'temporal');
    if (await works(file)) return file;
  }
  return undefined;
}

/** In a folder of its own, moved when complete and tried: what is there under its name works. */
async function obtain(tools: ToolsFolder, options: ExecutableOptions): Promise<string> {
  const { signal, downloadSite = 'https://temporal.download', onProgress = () => undefined } = options;
  const ways: [string, (obtaining: Obtaining) => Promise<void>][] = [
    ['download', (obtaining) => downloadCli(downloadSite, obtaining)],
    ['go install', (obtaining) => buildCli(obtaining, tools)],
  ];
  const faults: string[] = ['  PATH: there is no `temporal`'];
  // What a killed start left: the lock is ours.
  for (const name of await readdir(tools.path))
    if (name.startsWith(DRAFT)) await rm(join(tools.path, name), { recursive: true, force: true });
  for (const [name, way] of ways) {
    const folder = await mkdtemp(join(tools.path, DRAFT));
    try {
      await way({ folder, onProgress, signal });
      const said = await version(join(folder, 'temporal'));
      // What Go has built does not know its own.
      const number = name === 'download' ? /version ([\w.+-]+)/.exec(said)?.[1] : BUILT_CLI_VERSION;
      if (number === undefined) throw new Error(`its version cannot be read: ${said.trim()}`);
      const place = join(tools.path, folderOf(number));
      await mkdir(place, { recursive: true });
      await rename(join(folder, 'temporal'), join(place, 'temporal'));
      return join(place, 'temporal');
    } catch (error) {
      if (signal?.aborted) throw stoppedWhileStarting();
      faults.push(`  ${name}: ${explain(error)}`);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }
  throw new StackFailure(
    `Temporal's dev server cannot be had here:\n${faults.join('\n')}\n` +
      'Install Go or the Temporal CLI (https://docs.temporal.io/cli), or set TEMPORAL_ADDRESS to a server of your own.',
  );
}

async function findOnPath(): Promise<string | undefined> {
  try {
    const path = (await runProgram('/bin/sh', ['-c', 'command -v temporal'], { timeoutMs: 5_000 })).trim();
    return path.startsWith('/') && (await works(path)) ? path : undefined;
  } catch {
    return undefined;
  }
}

async function works(file: string): Promise<boolean> {
  return version(file).then(
    () => true,
    () => false,
  );
}

async function version(file: string): Promise<string> {
  return runProgram(file, ['--version'], { timeoutMs: 20_000 });
}

function explain(error: unknown): string {
  const { message, cause } = error as Error;
  // What `fetch` says alone is "fetch failed".
  return cause instanceof Error ? `${message} (${cause.message})` : message;
}

interface Obtaining {
  /** Empty, ours alone. `temporal` appears in it. */
  readonly folder: string;
  readonly onProgress: (message: string) => void;
  readonly signal: AbortSignal | undefined;
}

/**
 * The newest ready-made binary, from where the SDK gets its own; through the proxy that HTTPS_PROXY names, as npm and Go do it.
 * @param site `https://temporal.download`, or a stand-in.
 * @throws when it cannot be had, after 10 s at most when nobody answers.
 */
async function downloadCli(site: string, obtaining: Obtaining): Promise<void> {
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const url = `${site}/cli/archive/latest?platform=${process.platform}&arch=${arch}`;
  const dispatcher = proxyOfEnvironment();
  const connecting = new AbortController();
  const timer = setTimeout(() => connecting.abort(new Error('no answer within 10 s')), CONNECT_LIMIT_MS);
  const signals = [connecting.signal, ...(obtaining.signal ? [obtaining.signal] : [])];
  const answer = await fetch(url, { dispatcher, signal: AbortSignal.any(signals) }).finally(() =>
    clearTimeout(timer),
  );
  if (!answer.ok || !answer.body) throw new Error(`${site} answered ${answer.status}`);
  obtaining.onProgress("downloading Temporal's newest dev server");
  const { folder, signal } = obtaining;
  await runProgram('tar', ['-xzf', '-', '-C', folder, 'temporal'], {
    input: Readable.fromWeb(answer.body),
    timeoutMs: DOWNLOAD_LIMIT_MS,
    signal,
  });
}

/** Node's own fetch knows HTTPS_PROXY and NO_PROXY from 24 on, and only when it is told. */
function proxyOfEnvironment(): EnvHttpProxyAgent {
  try {
    return new EnvHttpProxyAgent();
  } catch {
    throw new Error('HTTPS_PROXY is no address of a proxy, such as http://proxy.example:3128');
  }
}

/** Builds the CLI, web page included, with the Go on this machine. @throws when there is no Go, or it fails. */
async function buildCli(obtaining: Obtaining, tools: ToolsFolder): Promise<void> {
  const what = `Temporal ${BUILT_CLI_VERSION} with Go: 3 to 5 minutes on two idle cores`;
  await goInstall({ ...obtaining, packages: [PACKAGE], what, tools });
}
