import { EnvHttpProxyAgent, fetch } from 'undici';
import { counted } from './counted-download';
import { goInstall } from './go-install';
import { runProgram } from './run-program';
import type { ToolsFolder } from './tools-folder';

/** Later versions need a nested module that no module proxy serves, so `go install` cannot build them. */
export const BUILT_CLI_VERSION = '1.5.1';

const PACKAGE = `github.com/temporalio/cli/cmd/temporal@v${BUILT_CLI_VERSION}`;
/** For the first bytes; a machine without internet is found out within it. */
const CONNECT_LIMIT_MS = 10_000;
const DOWNLOAD_LIMIT_MS = 300_000;

export interface Obtaining {
  /** Empty, ours alone. `temporal` appears in it. */
  readonly folder: string;
  /** `moving`: replaces the last one that moved. */
  readonly onProgress: (message: string, moving?: boolean) => void;
  readonly signal: AbortSignal | undefined;
}

/**
 * The newest ready-made binary, from where the SDK gets its own; through the proxy that HTTPS_PROXY names, as npm and Go do it.
 * @param site `https://temporal.download`, or a stand-in.
 * @throws when it cannot be had, after 10 s at most when nobody answers.
 */
export async function downloadCli(site: string, obtaining: Obtaining): Promise<void> {
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
    input: counted(answer, obtaining.onProgress),
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
export async function buildCli(obtaining: Obtaining, tools: ToolsFolder): Promise<void> {
  const what = `Temporal ${BUILT_CLI_VERSION} with Go: 3 to 5 minutes on two idle cores`;
  await goInstall({ ...obtaining, packages: [PACKAGE], what, tools, packageCount: 1_300 });
}
