import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { freeLowPorts } from '../../dev/free-port';
import { allProcesses, argumentsOf } from '../../dev/processes';
import type { Surroundings } from './run-command';

const READY = /Ctrl-C stops everything/;
/** A machine without Temporal builds it first. */
const READY_LIMIT_MS = 1_200_000;
const STOP_LIMIT_MS = 120_000;
const PORTS = ['API', 'INTERNAL', 'POSTGRES', 'TEMPORAL', 'TEMPORAL_UI', 'RECEIVER', 'SHOP'];

/**
 * `npm start` in a terminal of its own, on free ports: waits until it is ready, runs the two `curl` commands that it prints,
 * presses Ctrl-C, and looks for what is left.
 * @throws naming what is not as it should be.
 */
export async function tryStart({ cwd: folder, environment }: Surroundings): Promise<void> {
  const ports = await freeLowPorts(PORTS.length);
  const settings = Object.fromEntries(PORTS.map((name, at) => [`${name}_PORT`, String(ports[at])]));
  // Ctrl-C in a terminal reaches npm and all that is in its process group.
  const npm = spawn('npm', ['start'], {
    cwd: folder,
    env: { ...environment, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const pressCtrlC = () => {
    if (npm.exitCode === null && npm.pid !== undefined) process.kill(-npm.pid, 'SIGINT');
  };
  process.on('SIGINT', pressCtrlC);
  const ended = once(npm, 'exit') as Promise<[number | null, string | null]>;
  let printed = '';
  for (const stream of [npm.stdout, npm.stderr])
    stream.on('data', (chunk: Buffer) => {
      printed += chunk.toString();
      process.stdout.write(chunk);
    });
  try {
    await until(() => READY.test(printed), READY_LIMIT_MS, 'It is not ready', ended);
    runPrinted(printed);
  } finally {
    process.off('SIGINT', pressCtrlC);
    pressCtrlC();
    await until(() => npm.exitCode !== null || npm.signalCode !== null, STOP_LIMIT_MS, 'It does not stop');
  }
  const left = await processesIn(folder);
  if (left.length > 0) throw new Error(`After Ctrl-C there still is: ${left.join(', ')}`);
}

/** Each command begins with `curl` and ends at an empty line. */
function runPrinted(printed: string): void {
  const commands = [...printed.matchAll(/^curl [\s\S]*?(?=\n\n)/gm)].map(([command]) => command);
  if (commands.length !== 2) throw new Error(`It printed ${commands.length} curl commands, not 2`);
  const [quote, webhook] = commands.map((command) =>
    execFileSync('sh', ['-c', command], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }),
  );
  console.log(`\n${quote?.slice(0, 300)} …\n${webhook}`);
  if (!quote?.includes('"display":true')) throw new Error(`The quote shows no offer: ${quote}`);
  if (!webhook?.includes('"status":"delivered"')) throw new Error(`The webhook did not arrive: ${webhook}`);
}

async function until(
  condition: () => boolean,
  limitMs: number,
  what: string,
  ended?: Promise<unknown>,
): Promise<void> {
  const endsAt = Date.now() + limitMs;
  let over = false;
  void ended?.then(() => (over = true));
  while (!condition()) {
    if (over) throw new Error(`${what}: it ended`);
    if (Date.now() > endsAt) throw new Error(`${what} after ${limitMs / 1_000} s`);
    await sleep(100);
  }
}

/** Processes that run in the folder, or name it. */
async function processesIn(folder: string): Promise<string[]> {
  const found = await Promise.all(
    (await allProcesses()).map(async (pid) => {
      const command = (await argumentsOf(pid)).join(' ');
      return command.includes(folder) || workingFolder(pid).startsWith(folder) ? `${pid} ${command}` : '';
    }),
  );
  return found.filter((text) => text !== '');
}

/** Empty where there is no /proc, and for processes that are not ours. */
function workingFolder(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}
