import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { EnvHttpProxyAgent, fetch } from 'undici';
import { StackFailure, stoppedWhileStarting } from '../failure';
import { inTurn } from '../locks';
import { goInstall, runProgram, toolsFolder } from './tools';

/**
 * The one version that starts here, however it is obtained. `go install` cannot build later ones: they need a nested module that no module
 * proxy serves.
 */
const CLI_VERSION = '1.5.1';
/** Go compares what it builds with its checksum database. */
const PACKAGE = `github.com/temporalio/cli/cmd/temporal@v${CLI_VERSION}`;
/**
 * SHA-256 of the release's archives, as the Hermit package repositories of Cash App and of zph publish them (the latter has none for
 * linux-arm64). No other archive is unpacked, and none for a platform that is missing here is downloaded.
 */
const CHECKSUMS: Readonly<Record<string, string>> = {
  'linux-x64': 'ddc95e08b0b076efd4ea9733a3f488eb7d2be875f8834e616cd2a37358b4852d',
  'linux-arm64': 'bd1b0db9f18b051026de8bf6cc1505f2510f14bbb7a8b9a4a91fff46c77454f5',
  'darwin-x64': 'bbb73e2a31135abe50a1f1cdb35030c42961df618e8ce9c60ae89f201540c5d9',
  'darwin-arm64': 'cca01b7ea35ad56e2a328d9ae596bf716bd22313ef63c7a761c88354457c2415',
};
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
  /** Where the release's archives are; default https://github.com. */
  readonly downloadSite?: string;
  /** SHA-256 of the archive, in place of the release's. */
  readonly checksum?: string;
  /** Leave the one on the PATH alone. */
  readonly ignorePath?: boolean;
}

/**
 * Finds Temporal's command line, which holds the dev server: on the PATH; as kept from an earlier start; by download, if its checksum is
 * right; built with Go. Processes that look for it at once wait for one another.
 * @returns its absolute path.
 * @throws StackFailure naming every way that was tried, and why it failed.
 */
export async function findTemporal(options: ExecutableOptions = {}): Promise<string> {
  const onPath = options.ignorePath ? undefined : await findOnPath();
  if (onPath !== undefined) return onPath;
  const tools = await toolsFolder(options.toolsDir);
  const kept = await findKept(tools);
  if (kept !== undefined) return kept;
  const what = "which gets Temporal's dev server";
  return inTurn(
    join(tools, `temporal-cli${MACHINE}.lock`),
    { ...options, what },
    async () => (await findKept(tools)) ?? obtain(tools, options),
  );
}

/** Homes are shared between machines of different kinds. */
const MACHINE = `-${process.platform}-${process.arch}`;

const FOLDER = `temporal-cli-${CLI_VERSION}${MACHINE}`;

/** The one that an earlier start has kept. Others there were downloaded by an earlier release, which did not check them. */
async function findKept(tools: string): Promise<string | undefined> {
  const file = join(tools, FOLDER, 'temporal');
  return (await works(file)) ? file : undefined;
}

/** In a folder of its own, moved when complete and tried: what is there under its name works. */
async function obtain(tools: string, options: ExecutableOptions): Promise<string> {
  const { signal, downloadSite = 'https://github.com', onProgress = () => undefined } = options;
  const ways: [string, (obtaining: Obtaining) => Promise<void>][] = [
    ['download', (obtaining) => downloadCli(downloadSite, options.checksum, obtaining)],
    ['go install', buildCli],
  ];
  const faults: string[] = ['  PATH: there is no `temporal`'];
  // What a killed start left: the lock is ours.
  for (const name of await readdir(tools))
    if (name.startsWith(DRAFT)) await rm(join(tools, name), { recursive: true, force: true });
  for (const [name, way] of ways) {
    const folder = await mkdtemp(join(tools, DRAFT));
    try {
      await way({ folder, onProgress, signal });
      await version(join(folder, 'temporal'));
      const place = join(tools, FOLDER);
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
 * The binary of the release, through the proxy that HTTPS_PROXY names, as npm and Go do it.
 * @param site `https://github.com`, or a stand-in.
 * @throws when it cannot be had, after 10 s at most when nobody answers, and when its checksum is another.
 */
async function downloadCli(
  site: string,
  checksum = CHECKSUMS[MACHINE.slice(1)],
  obtaining: Obtaining,
): Promise<void> {
  if (checksum === undefined) throw new Error(`no checksum is known for ${MACHINE.slice(1)}`);
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  const archive = `temporal_cli_${CLI_VERSION}_${process.platform}_${arch}.tar.gz`;
  const url = `${site}/temporalio/cli/releases/download/v${CLI_VERSION}/${archive}`;
  const dispatcher = proxyOfEnvironment();
  const connecting = new AbortController();
  const timer = setTimeout(() => connecting.abort(new Error('no answer within 10 s')), CONNECT_LIMIT_MS);
  const signals = [connecting.signal, ...(obtaining.signal ? [obtaining.signal] : [])];
  const answer = await fetch(url, { dispatcher, signal: AbortSignal.any(signals) }).finally(() =>
    clearTimeout(timer),
  );
  if (!answer.ok || !answer.body) throw new Error(`${site} answered ${answer.status}`);
  obtaining.onProgress(`downloading Temporal's dev server ${CLI_VERSION}`);
  const { folder, signal } = obtaining;
  const file = join(folder, archive);
  const limit = AbortSignal.timeout(DOWNLOAD_LIMIT_MS);
  const sha256 = createHash('sha256');
  await pipeline(
    Readable.fromWeb(answer.body),
    async function* hashed(chunks: AsyncIterable<Uint8Array>) {
      for await (const chunk of chunks) {
        sha256.update(chunk);
        yield chunk;
      }
    },
    createWriteStream(file),
    { signal: AbortSignal.any(signal ? [limit, signal] : [limit]) },
  );
  const found = sha256.digest('hex');
  if (found !== checksum) throw new Error(`${url} has the SHA-256 ${found}, not ${checksum}: it is not used`);
  await runProgram('tar', ['-xzf', file, '-C', folder, 'temporal'], { timeoutMs: DOWNLOAD_LIMIT_MS, signal });
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
async function buildCli(obtaining: Obtaining): Promise<void> {
  const what = `Temporal ${CLI_VERSION} with Go: 3 to 5 minutes on two idle cores`;
  await goInstall({ ...obtaining, packages: [PACKAGE], what });
}
