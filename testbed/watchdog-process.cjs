/**
 * Cleans up after a test run that was killed: its standard input is a pipe from the run, which closes when the run
 * is gone. Then it ends everything that works in the directory (its argument) and deletes it.
 * A line `done` on the pipe says that all is well.
 */
const { readdirSync, readFileSync, readlinkSync, rmSync } = require('node:fs');

const directory = process.argv[2];
let told = '';
// A Ctrl-C meant for the run must not end this process first.
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(name, () => undefined);
process.stdin.on('data', (chunk) => (told += chunk));
process.stdin.on('close', () => {
  if (told.includes('done')) process.exit(0);
  // SIGQUIT is Postgres' immediate shutdown, which also gives back its shared memory.
  for (const name of ['SIGCONT', 'SIGQUIT']) for (const pid of workers()) send(pid, name);
  const startedAt = Date.now();
  const waiting = setInterval(() => {
    const left = workers();
    if (Date.now() - startedAt > 3_000) for (const pid of left) send(pid, 'SIGKILL');
    if (left.length > 0) return;
    clearInterval(waiting);
    rmSync(directory, { recursive: true, force: true });
  }, 50);
});

/** The directory stands on their command line, or they have gone there (sessions of a dead Postgres). */
function workers() {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
    const commandLine = attempt(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
    return (
      commandLine.includes(directory) || attempt(() => readlinkSync(`/proc/${pid}/cwd`)).startsWith(directory)
    );
  });
}

function send(pid, name) {
  attempt(() => process.kill(Number(pid), name));
}

/** What the system refuses or what is gone counts as nothing. */
function attempt(action) {
  try {
    return action();
  } catch {
    return '';
  }
}
