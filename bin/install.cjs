/** Brings node_modules in line with package-lock.json. Built-ins alone; says what it does on standard error only. */
const { spawn } = require('child_process');
const { createHash } = require('crypto');
const { readFileSync, rmSync, writeFileSync } = require('fs');
const { basename, join } = require('path');
const { acquireInstallLock } = require('./install-lock.cjs');

const HEARTBEAT_MS = 5_000;

/**
 * @param {{ root: string, npmPath?: string, say: (text: string) => void }} options npmPath: npm's own script, when
 *   npm started us; else the npm on PATH is used.
 * @returns {Promise<void>} Rejects with `exitCode` set when npm fails.
 */
async function ensureInstalled({ root, npmPath, say }) {
  const wanted = fingerprint(root);
  const stamp = join(root, 'node_modules', '.installed-from');
  const upToDate = () => readOrEmpty(stamp) === wanted;
  if (upToDate()) return;
  const lock = await acquireInstallLock(join(root, '.cache', 'install.lock'), say);
  try {
    // Another bootstrap may have done it while we waited.
    if (upToDate()) return;
    if (!installedByHand(root)) await npmCi({ root, npmPath, say, lock });
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

async function npmCi({ root, npmPath, say, lock }) {
  const startedAt = Date.now();
  const seconds = () => Math.round((Date.now() - startedAt) / 1000);
  say('Installing dependencies with npm ci (first time or lock file changed; about a minute) ...');
  rmSync(join(root, 'node_modules', '.installed-from'), { force: true });
  const ci = ['ci', '--include=dev', '--include=optional', '--loglevel=error', '--progress=false'];
  const own = npmPath && basename(npmPath) === 'npm-cli.js';
  const [file, args] = own ? [process.execPath, [npmPath, ...ci]] : ['npm', ci];
  // Standard output belongs to the command that follows: scripts read it.
  const npm = spawn(file, args, { cwd: root, stdio: ['ignore', 2, 2] });
  lock.alsoHeldBy(npm.pid);
  const heartbeat = setInterval(() => say(`  still installing, ${seconds()} s`), HEARTBEAT_MS);
  const pass = (signal) => npm.kill(signal);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, pass);
  try {
    await new Promise((resolve, reject) => {
      npm.once('error', (error) =>
        reject(failure(`npm could not be started (${error.message}). Is it on PATH?`, 1)),
      );
      npm.once('exit', (code, signal) => {
        if (code === 0) resolve();
        else if (signal) reject(failure(`Installation stopped by ${signal}; it starts afresh next time.`, 1));
        else reject(failure(`npm ci failed with code ${code}, see above. Nothing was started.`, code));
      });
    });
  } finally {
    clearInterval(heartbeat);
    for (const signal of signals) process.off(signal, pass);
  }
  say(`Installed in ${seconds()} s.`);
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
