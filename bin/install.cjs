/** Brings node_modules in line with package-lock.json. Built-ins alone; says what it does on standard error only. */
const { spawn } = require('child_process');
const { createHash } = require('crypto');
const { existsSync, readFileSync, rmSync, statfsSync, writeFileSync } = require('fs');
const { basename, join } = require('path');
const { acquireInstallLock } = require('./install-lock.cjs');

/** Between two looks at how far npm has come; where no line can be drawn again each becomes a line. */
const REDRAW_MS = 500;
const LINE_MS = 10_000;
/** Megabytes that the dependencies take, measured. */
const ROOM_MB = 650;
const CLEAR_LINE = '\r\u001B[K';

/**
 * @param {{ root: string, npmPath?: string, say: (text: string) => void, redraws?: boolean, beforehand?: () => Promise<void> }} options
 *   npmPath: npm's own script, when npm started us; else the npm on PATH is used. redraws: whether standard error is a
 *   terminal. beforehand: run before an installation.
 * @returns {Promise<void>} Rejects with `exitCode` set when npm fails.
 */
async function ensureInstalled({ root, npmPath, say, redraws = false, beforehand = async () => undefined }) {
  const wanted = fingerprint(root);
  const stamp = join(root, 'node_modules', '.installed-from');
  const upToDate = () => readOrEmpty(stamp) === wanted;
  if (upToDate()) return;
  const figure = progressFigure({ root, say, redraws });
  const lock = await acquireInstallLock(join(root, '.cache', 'install.lock'), say, figure.draw);
  figure.clear();
  try {
    // Another bootstrap may have done it while we waited.
    if (upToDate()) return;
    if (!installedByHand(root)) {
      checkRoom(root);
      await beforehand();
      await npmCi({ root, npmPath, say, figure, lock });
    }
    writeFileSync(stamp, wanted);
  } finally {
    lock.release();
  }
}

/** What an installation depends on. */
function fingerprint(root) {
  const hash = createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex');
  return `${hash} ${process.platform} ${process.arch} ${process.versions.node.split('.')[0]}\n`;
}

/**
 * Whether somebody ran npm themselves: npm leaves a lock file inside node_modules, and all that it names agrees with
 * ours. Saves a second installation.
 */
function installedByHand(root) {
  const parse = (...path) => JSON.parse(readOrEmpty(join(root, ...path)) || '{}').packages;
  const present = parse('node_modules', '.package-lock.json');
  const wanted = parse('package-lock.json');
  if (!present || !wanted) return false;
  return (
    Object.entries(present).every(
      ([path, entry]) =>
        wanted[path] &&
        wanted[path].version === entry.version &&
        fits(entry.os, process.platform) &&
        fits(entry.cpu, process.arch),
    ) &&
    Object.entries(wanted).every(
      ([path, entry]) => path === '' || entry.optional || entry.peer || present[path],
    )
  );
}

function fits(list, own) {
  return !list || list.includes(own);
}

/** npm would notice after half a minute. */
function checkRoom(root) {
  const { bavail, bsize } = statfsSync(root);
  const freeMb = Math.floor((bavail * bsize) / 1_000_000);
  if (freeMb < ROOM_MB)
    throw failure(
      `${freeMb} MB are free on the disk of ${root}, and the dependencies take ${ROOM_MB} MB. Make room, then run this again.`,
      1,
    );
}

/** Counts the packages that are in place, of those that the lock file names for this machine. */
function packageCounter(root) {
  const { packages = {} } = JSON.parse(readOrEmpty(join(root, 'package-lock.json')) || '{}');
  const wanted = Object.entries(packages)
    .filter(
      ([path, entry]) =>
        path.startsWith('node_modules/') &&
        !entry.link &&
        fits(entry.os, process.platform) &&
        fits(entry.cpu, process.arch),
    )
    .map(([path]) => join(root, path, 'package.json'));
  return () => `${wanted.filter((file) => existsSync(file)).length} of ${wanted.length} packages`;
}

/** How far npm has come: one line of a terminal, elsewhere a line now and then. */
function progressFigure({ root, say, redraws }) {
  const startedAt = Date.now();
  const count = packageCounter(root);
  let drawnAt = startedAt;
  return {
    draw: () => {
      if (Date.now() - drawnAt < (redraws ? REDRAW_MS - 100 : LINE_MS)) return;
      drawnAt = Date.now();
      const text = `  ${count()}, ${Math.round((drawnAt - startedAt) / 1000)} s`;
      if (redraws) process.stderr.write(`${CLEAR_LINE}${text}`);
      else say(text);
    },
    clear: () => redraws && process.stderr.write(CLEAR_LINE),
  };
}

async function npmCi({ root, npmPath, say, figure, lock }) {
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1000);
  say('Installing dependencies with npm ci (first time or lock file changed; about a minute) ...');
  rmSync(join(root, 'node_modules', '.installed-from'), { force: true });
  const ci = ['ci', '--include=dev', '--include=optional', '--loglevel=error', '--progress=false'];
  const own = npmPath && basename(npmPath) === 'npm-cli.js';
  const [file, args] = own ? [process.execPath, [npmPath, ...ci]] : ['npm', ci];
  const npm = spawn(file, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
  lock.alsoHeldBy(npm.pid);
  let complaints = '';
  npm.stderr.on('data', (chunk) => {
    complaints = (complaints + chunk).slice(-10_000);
    figure.clear();
    process.stderr.write(chunk);
  });
  const heartbeat = setInterval(() => figure.draw(), REDRAW_MS);
  const pass = (signal) => npm.kill(signal);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, pass);
  try {
    await new Promise((resolve, reject) => {
      npm.once('error', (error) =>
        reject(failure(`npm could not be started (${error.message}). Is it on PATH?`, 1)),
      );
      npm.once('close', (code, signal) => {
        if (code === 0) resolve();
        else if (signal) reject(failure(`Installation stopped by ${signal}; it starts afresh next time.`, 1));
        else reject(failure(`npm ci failed with code ${code}, see above. ${adviceOn(complaints)}`, code));
      });
    });
  } finally {
    clearInterval(heartbeat);
    figure.clear();
    for (const signal of signals) process.off(signal, pass);
  }
  say(`Installed in ${seconds()} s.`);
}

/** What a person can do about what npm says. */
function adviceOn(complaints) {
  if (/ENOSPC/.test(complaints)) return 'The disk is full: make room, then run this again.';
  if (/ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|E40[37]|ERR_SOCKET_TIMEOUT/.test(complaints))
    return 'npm does not reach its registry: look at `npm config get registry` and `npm config get https-proxy`, then run this again.';
  if (/EACCES|EPERM|EROFS/.test(complaints))
    return 'This user may not write the project or the cache of npm: give them to it, then run this again.';
  return 'Nothing was started.';
}

function failure(message, exitCode) {
  return Object.assign(new Error(message), { exitCode });
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

module.exports = { ensureInstalled };
