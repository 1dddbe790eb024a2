/** One installation at a time, across processes: a directory, because making one is atomic everywhere. */
const { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } = require('fs');
const { dirname, join } = require('path');

const POLL_MS = 250;
/** Between making the directory and naming the holder lie microseconds. */
const NAMELESS_MS = 5_000;

/** Waits for the lock, and has a look every 250 ms; takes it over when its holders are gone (they were killed). */
async function acquireInstallLock(directory, say, look = () => undefined) {
  mkdirSync(dirname(directory), { recursive: true });
  const holders = join(directory, 'holders.json');
  const name = (pids) => {
    writeFileSync(`${holders}.new`, JSON.stringify(pids.map((pid) => ({ pid, since: startTime(pid) }))));
    renameSync(`${holders}.new`, holders);
  };
  let told = false;
  for (;;) {
    try {
      mkdirSync(directory);
      break;
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
    }
    if (isStale(directory, holders)) {
      takeAway(directory);
      continue;
    }
    if (!told) say('Another process is installing the dependencies; waiting for it ...');
    told = true;
    look();
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  name([process.pid]);
  return {
    /** npm outlives us when we are killed: then it still holds the lock. */
    alsoHeldBy: (pid) => pid && name([process.pid, pid]),
    release: () => rmSync(directory, { recursive: true, force: true }),
  };
}

function isStale(directory, holders) {
  try {
    return JSON.parse(readFileSync(holders, 'utf8')).every(
      ({ pid, since }) => !isRunning(pid) || startTime(pid) !== since,
    );
  } catch {
    try {
      return Date.now() - statSync(directory).mtimeMs > NAMELESS_MS;
    } catch {
      return false;
    }
  }
}

/** By renaming, which only one of several can do. */
function takeAway(directory) {
  const aside = `${directory}.${process.pid}`;
  try {
    renameSync(directory, aside);
    rmSync(aside, { recursive: true, force: true });
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
}

/** Tells a process from a later one with the same number; unknown where there is no /proc. */
function startTime(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19];
  } catch {
    return 'unknown';
  }
}

module.exports = { acquireInstallLock };
