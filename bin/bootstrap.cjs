/**
 * The entry of `npm start`, `npm run dev`, `npm test`, `npm run ops` and `npm run demo`. It uses only Node's built-ins, as
 * it may run before anything is installed. `start` runs in its own process group and gets each Ctrl-C once,
 * although terminal and npm both send it. When this process is killed, its IPC channel closes and the
 * stack stops in order. The other commands stay in the terminal's group.
 */
const { spawn } = require('child_process');
const { createHash } = require('crypto');
const { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } = require('fs');
const { connect, createServer } = require('net');
const { tmpdir } = require('os');
const path = require('path');

const root = path.join(__dirname, '..');
const modules = path.join(root, 'node_modules');
const tsx = ['--import', 'tsx'];
/** How V8 collects what quotes leave behind (docs/operations/speed.md). */
const collector = ['--max-semi-space-size=32', '--no-allocation-site-pretenuring'];
const commands = {
  install: null,
  start: [...collector, ...tsx, 'bin/start.ts'],
  dev: ['--watch', '--watch-preserve-output', ...tsx, 'bin/start.ts'],
  ops: [...tsx, 'bin/ops.ts'],
  demo: [...tsx, 'bin/demo.ts'],
  test: ['node_modules/jest/bin/jest.js'],
};
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
/** A signal from the terminal and its copy from npm arrive within milliseconds. */
const SAME_SIGNAL_MS = 400;

const say = (text) => process.stderr.write(`${text}\n`);
const failure = (message, exitCode = 1) => Object.assign(new Error(message), { exitCode });

/** What tests and checks also need is not installed for `start`, `ops` and `demo`, is added to what they have, and stays where it is. */
async function ensureInstalled(forTests) {
  const stamp = path.join(modules, '.installed-from');
  const hash = createHash('sha256').update(readFileSync(path.join(root, 'package-lock.json')));
  const { platform, arch, version } = process;
  const wanted = `${hash.digest('hex')} ${platform} ${arch} ${version.split('.')[0]}\n`;
  const installed = (name) => existsSync(path.join(modules, name));
  const everything = forTests || installed('jest');
  const current = () => (textOf(stamp) === wanted || installedByHand()) && installed('tsx');
  const upToDate = () => current() && (installed('jest') || !everything);
  if (upToDate()) return;
  await oneAtATime(async (lock) => {
    // Another process may have done it meanwhile.
    if (upToDate()) return;
    const how = everything ? ['--include=dev'] : ['--omit=dev', '--workspaces=false'];
    // A stack may be running from what is there: npm ci would delete it first.
    const add = current() ? ['install', '--no-save'] : ['ci'];
    const options = ['--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
    say(`Installing dependencies with npm ${add[0]} (up to a minute) ...`);
    // Standard output belongs to the command. Warnings are of packages for browsers, which name a newer Node.
    // npm continues when this process is killed, so it holds the lock too.
    const stdio = ['ignore', process.stderr, process.stderr, lock];
    const child = spawn('npm', [...add, ...how, ...options], { cwd: root, stdio });
    const [code, signal] = await ended(child, true);
    if (code !== 0) throw failure(`npm ${add[0]} ended with ${signal ?? code}, see above.`, code ?? 1);
    removeOtherPlatforms();
    writeFileSync(stamp, wanted);
  });
}

/** Whether npm was run by hand since the lock file changed. */
function installedByHand() {
  const changed = (name) => statSync(path.join(root, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  // Equal where both were written within one tick of the kernel's clock.
  return changed('node_modules/.package-lock.json') >= changed('package-lock.json');
}

/** Temporal's package brings its native module for five platforms, 30 MB each. */
function removeOtherPlatforms() {
  const releases = path.join(modules, '@temporalio/core-bridge/releases');
  const arch = { x64: 'x86_64', arm64: 'aarch64' }[process.arch];
  const ours = `${arch}-${{ linux: 'unknown-linux-gnu', darwin: 'apple-darwin' }[process.platform]}`;
  if (!existsSync(path.join(releases, ours))) return;
  for (const name of readdirSync(releases))
    if (name !== ours) rmSync(path.join(releases, name), { recursive: true });
}

/** Runs `work` while no other process does. The lock is a socket, which the system closes when its last holder ends. */
async function oneAtATime(work) {
  const hash = createHash('sha256').update(root).digest('hex').slice(0, 32);
  const name = process.platform === 'linux' ? `\0pfqs-install-${hash}` : path.join(tmpdir(), `pfqs-${hash}`);
  let server;
  for (let told = false; (server = await listening(name)) === undefined; told = true) {
    if (!told) say('Another process is installing the dependencies; waiting for it ...');
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  try {
    await work(server._handle.fd);
  } finally {
    server.close();
  }
}

/** A server that listens there, or undefined when another process does. */
async function listening(name) {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error) => {
      if (error.code !== 'EADDRINUSE') return reject(error);
      // Elsewhere than on Linux it is a file, which a killed process leaves.
      if (process.platform !== 'linux')
        connect(name)
          .on('error', () => rmSync(name, { force: true }))
          .end();
      resolve(undefined);
    });
    server.listen(name, () => resolve(server));
  });
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
  else await ensureInstalled(['test', 'install', 'dev'].includes(name));
  if (name === 'install') return;
  const owned = name === 'start' || name === 'dev';
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
