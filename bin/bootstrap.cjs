/**
 * The entry of `npm start`, `npm test`, `npm run ops` and `npm run demo`. It uses only Node's built-ins, as
 * it may run before anything is installed. `start` runs in its own process group and gets each Ctrl-C once,
 * although terminal and npm both send it. When this process is killed, its IPC channel closes and the
 * stack stops in order. The other commands stay in the terminal's group.
 */
const { spawn } = require('child_process');
const { createHash } = require('crypto');
const { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } = require('fs');
const path = require('path');

const root = path.join(__dirname, '..');
const modules = path.join(root, 'node_modules');
const tsx = ['--import', 'tsx'];
/** How V8 collects what quotes leave behind (docs/operations/speed.md). */
const collector = ['--max-semi-space-size=32', '--no-allocation-site-pretenuring'];
const commands = {
  install: null,
  start: [...collector, ...tsx, 'bin/start.ts'],
  ops: [...tsx, 'bin/ops.ts'],
  demo: [...tsx, 'bin/demo.ts'],
  test: ['node_modules/jest/bin/jest.js'],
};
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
/** A signal from the terminal and its copy from npm arrive within milliseconds. */
const SAME_SIGNAL_MS = 400;

const say = (text) => process.stderr.write(`${text}\n`);
const failure = (message, exitCode = 1) => Object.assign(new Error(message), { exitCode });

async function ensureInstalled() {
  const stamp = path.join(modules, '.installed-from');
  const hash = createHash('sha256').update(readFileSync(path.join(root, 'package-lock.json')));
  const { platform, arch, version } = process;
  const wanted = `${hash.digest('hex')} ${platform} ${arch} ${version.split('.')[0]}\n`;
  const upToDate = () => textOf(stamp) === wanted || installedByHand();
  if (upToDate()) return;
  await oneAtATime(async (alsoHeldBy) => {
    // Another process may have done it meanwhile.
    if (upToDate()) return;
    say('Installing dependencies with npm ci (about a minute) ...');
    const ci = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
    // Standard output belongs to the command. Warnings are of packages for browsers, which name a newer Node.
    const child = spawn('npm', ci, { cwd: root, stdio: ['ignore', process.stderr, process.stderr] });
    alsoHeldBy(child.pid);
    const [code, signal] = await ended(child, true);
    if (code !== 0) throw failure(`npm ci ended with ${signal ?? code}, see above.`, code ?? 1);
    writeFileSync(stamp, wanted);
  });
}

/** Whether npm was run by hand since the lock file changed, with development dependencies. */
function installedByHand() {
  const changed = (name) => statSync(path.join(root, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // Equal where both were written within one tick of the kernel's clock.
  const current = changed('node_modules/.package-lock.json') >= changed('package-lock.json');
  return current && existsSync(path.join(modules, 'tsx'));
}

/** Runs `work` while no other process does. The lock names its holders, and killed ones lose it. */
async function oneAtATime(work) {
  mkdirSync(path.join(root, '.cache'), { recursive: true });
  const lock = path.join(root, '.cache', 'install.lock');
  for (let told = false; !created(lock); told = true) {
    const holders = textOf(lock);
    if (holders !== '' && !holders.split(' ').some(isRunning)) rmSync(lock, { force: true });
    else if (!told) say(`Another process is installing the dependencies; waiting for it (${lock}) ...`);
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  try {
    // npm continues when this process is killed, so it is a holder of the lock too.
    await work((pid) => pid && writeFileSync(lock, `${process.pid} ${pid}`));
  } finally {
    rmSync(lock, { force: true });
  }
}

function created(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    return false;
  }
}

function isRunning(pid) {
  try {
    return process.kill(Number(pid), 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Empty when there is no such file. */
function textOf(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Its code and signal, once it has ended; signals to this process are passed on to it. */
async function ended(child, ownGroup) {
  const lastAt = {};
  const pass = (signal) => {
    // In the terminal's group the child has received Ctrl-C already.
    if (signal === 'SIGINT' && !ownGroup && process.stdin.isTTY) return;
    if (Date.now() - (lastAt[signal] ?? 0) > SAME_SIGNAL_MS) child.kill(signal);
    lastAt[signal] = Date.now();
  };
  for (const signal of SIGNALS) process.on(signal, pass);
  try {
    return await new Promise((resolve, reject) => {
      child.on('error', reject).on('exit', (...how) => resolve(how));
    });
  } finally {
    for (const signal of SIGNALS) process.off(signal, pass);
  }
}

async function main() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19))
    throw failure(`Node 20.19 or later is needed; this is ${process.versions.node}. See https://nodejs.org`);
  const [name, ...extra] = process.argv.slice(2);
  if (!Object.keys(commands).includes(name))
    throw failure(`usage: node bin/bootstrap.cjs ${Object.keys(commands).join('|')} [arguments]`, 2);
  // A production folder has the build and no development dependencies, and nothing is installed there.
  const production =
    existsSync(path.join(modules, '.package-lock.json')) && !existsSync(path.join(modules, 'tsx'));
  if (name === 'ops' && production && existsSync(path.join(root, 'dist/bin/ops.js')))
    commands.ops = ['dist/bin/ops.js'];
  else await ensureInstalled();
  if (name === 'install') return;
  const owned = name === 'start';
  if (owned && major < 22) say(`Node ${major} is out of support and gets no security fixes: use Node 24.`);
  // `tsx` is found from the working directory.
  const stdio = owned ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit';
  const child = spawn(process.execPath, [...commands[name], ...extra], { cwd: root, detached: owned, stdio });
  const [code, signal] = await ended(child, owned);
  if (signal === null) process.exit(code);
  process.kill(process.pid, signal);
}

main().catch((error) => {
  say(error.message);
  process.exit(error.exitCode ?? 1);
});
