/**
 * Says before the first `npm start` installs anything what this machine will lack: the server of Temporal is the one part
 * that npm does not bring. Built-ins alone; how it is really got is in dev/temporal/executable.ts.
 */
const { spawn } = require('child_process');
const { accessSync, constants, readdirSync } = require('fs');
const { homedir, tmpdir } = require('os');
const { delimiter, join } = require('path');

const NAME = 'partner-finance-quote-service';
/** A machine without internet is often one whose packets are dropped. */
const ANSWER_LIMIT_MS = 4_000;
const SITE = 'https://temporal.download';
/** As dev/temporal/go-install.ts looks for it. */
const GO = ['go', '/usr/local/go/bin/go'];
const PROXIES = ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy'];

/**
 * @param {{ env: Record<string, string | undefined>, say: (text: string) => void, site?: string, goNames?: string[] }} options
 *   site: where ready-made programs are, or a stand-in.
 */
async function lookAhead({ env, say, site = SITE, goNames = GO }) {
  if (env.TEMPORAL_ADDRESS || runs('temporal', env) || isKept(env)) return;
  // Node's own fetch does not ask it; the download will, with a package that is not installed yet.
  if (PROXIES.some((name) => env[name])) return;
  const go = goNames.find((name) => runs(name, env));
  const [downloads, modules] = await Promise.all([answers(site), go ? modulesCome(go, env) : false]);
  if (downloads) return;
  if (modules) {
    say(
      `Temporal cannot be downloaded here (${site} does not answer), but this machine has Go: the start will build it, this once, in 3 to 5 minutes.`,
    );
    return;
  }
  say(
    [
      `This machine lacks Temporal: there is no \`temporal\` on the PATH, ${site} does not answer, and ${go ? 'Go gets no modules' : 'there is no Go to build it with'}.`,
      'Quotes, the shop and the documentation will work; webhooks will wait.',
      `To have them too, ${go ? 'give Go a module proxy (GOPROXY), install' : 'install Go or'} the Temporal CLI (https://docs.temporal.io/cli), or set TEMPORAL_ADDRESS to a server of your own.`,
    ].join('\n'),
  );
}

function runs(program, env) {
  const folders = program.startsWith('/') ? [''] : (env.PATH || '').split(delimiter);
  return folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Whether an earlier start kept one, here or for another clone. */
function isKept(env) {
  const user = process.getuid ? process.getuid() : 0;
  const folders = env.TOOLS_DIR
    ? [env.TOOLS_DIR]
    : [join(env.HOME || homedir(), '.cache', NAME), join(tmpdir(), `${NAME}-${user}`)];
  return folders.some((folder) => {
    try {
      return readdirSync(folder).some((name) => /^temporal-cli-.*\d-/.test(name) && !name.endsWith('.lock'));
    } catch {
      return false;
    }
  });
}

async function answers(site) {
  try {
    const { status } = await fetch(site, { method: 'HEAD', signal: AbortSignal.timeout(ANSWER_LIMIT_MS) });
    // A gateway that lets nobody out answers, too.
    return status < 400 || status === 404;
  } catch {
    return false;
  }
}

/** Whether the modules of Go can be had: asks for one. */
function modulesCome(go, env) {
  return new Promise((resolve) => {
    const child = spawn(go, ['list', '-m', 'github.com/temporalio/cli@latest'], {
      cwd: tmpdir(),
      env: { ...env, GOFLAGS: '-mod=mod' },
      stdio: 'ignore',
      timeout: ANSWER_LIMIT_MS,
    });
    child.once('error', () => resolve(false));
    child.once('close', (code) => resolve(code === 0));
  });
}

module.exports = { lookAhead };
