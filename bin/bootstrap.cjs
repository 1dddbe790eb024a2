/**
 * The entry of `npm start`, `npm test`, `npm run ops` and `npm run demo`: Node's built-ins alone, because it may run before anything
 * is installed. Checks Node, installs what the lock file asks for, runs the command, ends as the command ended.
 *
 * Signals. `start` runs in a process group of its own: a Ctrl-C in the terminal reaches this process only (often
 * twice, from the terminal and from npm), and is passed on once. `test` and `ops` stay in the terminal's group, so
 * Ctrl-C reaches them directly. `start` also gets an IPC channel: when this process is killed the channel closes, and
 * the stack shuts down in order.
 */
const { spawn } = require('child_process');
const { existsSync, readFileSync } = require('fs');
const { join } = require('path');

const root = join(__dirname, '..');
const tsx = ['--import', 'tsx'];
/** How V8 collects what quotes leave behind (docs/operations/speed.md, Quotes). */
const collector = ['--max-semi-space-size=32', '--no-allocation-site-pretenuring'];
const commands = {
  install: null,
  start: { args: [...collector, ...tsx, join(root, 'bin', 'start.ts')], owned: true },
  ops: { args: [...tsx, join(root, 'bin', 'ops.ts')], owned: false },
  demo: { args: [...tsx, join(root, 'bin', 'demo.ts')], owned: false },
  test: { args: [join(root, 'node_modules', 'jest', 'bin', 'jest.js')], owned: false },
};

/** A signal from the terminal and its copy from npm arrive within milliseconds; a person takes longer. */
const SAME_SIGNAL_MS = 400;
const PARENT_CHECK_MS = 250;

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  fail(`Node 20.19 or later is needed; this is ${process.versions.node}. See https://nodejs.org`);
}

/** As runtime/node-release.ts says it in the logs of processes; this runs before anything can be loaded. */
function warnOfNode() {
  if (Number(process.versions.node.split('.')[0]) >= 22) return;
  const { node } = process.versions;
  process.stderr.write(
    `Node ${node} is out of support since 30 April 2026 and gets no security fixes: use Node 24.\n`,
  );
}

function fail(message, code) {
  process.stderr.write(`${message}\n`);
  process.exit(code || 1);
}

function run(command, extra) {
  const child = spawn(process.execPath, [...command.args, ...extra], {
    // `tsx` is found from the working directory.
    cwd: root,
    detached: command.owned,
    stdio: command.owned ? ['inherit', 'inherit', 'inherit', 'ipc'] : 'inherit',
  });
  const lastAt = {};
  const pass = (signal) => {
    const now = Date.now();
    if (now - (lastAt[signal] || 0) > SAME_SIGNAL_MS) child.kill(signal);
    lastAt[signal] = now;
  };
  const handlers = {
    SIGTERM: () => pass('SIGTERM'),
    SIGHUP: () => pass('SIGHUP'),
    // In the terminal's group the child has had it already.
    SIGINT: () => (command.owned || !process.stdin.isTTY) && pass('SIGINT'),
  };
  for (const [signal, handler] of Object.entries(handlers)) process.on(signal, handler);
  const watch =
    command.owned && process.env.npm_lifecycle_event ? watchParent(() => pass('SIGTERM')) : undefined;

  child.on('error', (error) => fail(`${process.execPath} could not be started: ${error.message}`));
  child.on('exit', (code, signal) => {
    clearInterval(watch);
    if (signal === null) process.exit(code);
    for (const [name, handler] of Object.entries(handlers)) process.off(name, handler);
    process.kill(process.pid, signal);
  });
}

/** In this process, which signals reach as they would the child. False, with nothing done: only tsx can run it. */
function runOps(extra, bundle = require('./ops-bundle.cjs').opsBundle(root)) {
  if (bundle === null) return false;
  process.chdir(root);
  process.argv = [process.execPath, bundle, ...extra];
  require(bundle);
  return true;
}

/** What was built, where somebody has installed what production needs and no more. Else null. */
function builtOps() {
  const modules = join(root, 'node_modules');
  const built = join(root, 'dist', 'bin', 'ops.js');
  const production = existsSync(join(modules, '.package-lock.json')) && !existsSync(join(modules, 'tsx'));
  return production && existsSync(built) ? built : null;
}

/**
 * npm passes signals on; killed, it cannot, and would leave a stack that nobody sees. Between npm and us there may be
 * the shell of the script, which lives on: then its parent is what counts.
 */
function watchParent(onGone) {
  const parent = process.ppid;
  const throughShell = readProc(parent, 'cmdline').split('\0')[1] === '-c';
  const lineage = () => `${process.ppid} ${throughShell ? parentOf(parent) : ''}`;
  const before = lineage();
  const timer = setInterval(() => {
    if (lineage() === before) return;
    clearInterval(timer);
    onGone();
  }, PARENT_CHECK_MS);
  return timer;
}

function parentOf(pid) {
  return readProc(pid, 'stat').split(') ').pop().split(' ')[1];
}

/** Empty where there is no /proc. */
function readProc(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return '';
  }
}

async function main() {
  checkNode();
  const [name, ...extra] = process.argv.slice(2);
  if (!Object.keys(commands).includes(name))
    fail(`usage: node bin/bootstrap.cjs ${Object.keys(commands).join('|')} [arguments]`, 2);
  if (name === 'ops') {
    const built = builtOps();
    if (built !== null) return void runOps(extra, built);
  }
  if (name === 'start') warnOfNode();
  const { ensureInstalled } = require('./install.cjs');
  const say = (text) => process.stderr.write(`${text}\n`);
  await ensureInstalled({
    root,
    npmPath: process.env.npm_execpath,
    say,
    redraws: process.stderr.isTTY,
    ...(name === 'start' && {
      beforehand: () => require('./look-ahead.cjs').lookAhead({ env: process.env, say }),
    }),
  });
  if (name === 'ops' && runOps(extra)) return;
  if (commands[name]) run(commands[name], extra);
}

/** One sentence on what is wrong, one on what to do. */
function explain(error) {
  const advice = {
    ENOSPC: 'The disk is full: make room, then run this again.',
    EACCES: `This user may not write there: run this as the owner of ${root}.`,
    EROFS: 'The disk is read-only: copy the project to one that can be written.',
  };
  return advice[error.code] ? `${error.message}. ${advice[error.code]}` : error.message;
}

main().catch((error) => fail(explain(error), error.exitCode));
