import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { argumentsOf, signal, waitForEnd, withChildren } from '../../dev/processes';
import { until } from '../../testbed/until';
import { accountOf, readEnvironment, readUnit, type UnitName } from './units';
import type { MachineName } from './network';

export type Machine = Awaited<ReturnType<typeof openMachine>>;

interface MachineOptions {
  readonly name: MachineName;
  readonly directory: string;
  readonly units: readonly UnitName[];
  /** Folders and files of this program's, by their path under /srv/quotes. */
  readonly mounts: Readonly<Record<string, string>>;
}

/** A machine of the cluster: a network and a mount namespace, and what runs in them. It starts again what ends, as systemd would. */
export async function openMachine({ name, directory, units, mounts }: MachineOptions) {
  const srv = join(directory, name, 'quotes');
  const binds = Object.entries(mounts).map(([to, from]) => `mount --bind ${from} /srv/quotes/${to}`);
  const script = [
    `mount --bind ${join(directory, name)} /srv`,
    `mount --bind ${join(directory, 'resolv.conf')} /etc/resolv.conf`,
    ...binds,
    'echo ready',
    'exec sleep infinity',
  ].join('\n');
  const holder = spawn('ip', ['netns', 'exec', name, 'sh', '-euc', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(holder.stdout, 'data');
  const running = new Map<UnitName, ChildProcess>();
  const wanted = new Set<UnitName>();

  const enter = (user: string, argv: readonly string[]) => {
    const account = accountOf(user);
    const ids = ['--reuid', String(account.user), '--regid', String(account.group), '--clear-groups'];
    return ['--target', String(holder.pid), '--net', '--mount', '--', 'setpriv', ...ids, '--', ...argv];
  };
  const here = (path: string) => path.replace('/srv/quotes', srv);
  const environmentOf = (more: Readonly<Record<string, string>>) => ({
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    LANG: 'C.UTF-8',
    HOME: '/srv/quotes',
    ...more,
  });

  function launch(unit: UnitName): void {
    const { user, environmentFiles, argv, restartMs } = readUnit(unit);
    const environments = environmentFiles.map((file) => readEnvironment(here(file)));
    const log = openSync(join(directory, `${name}-${unit}.log`), 'a');
    const child = spawn('nsenter', enter(user, argv), {
      env: environmentOf(Object.assign({}, ...environments)),
      stdio: ['ignore', log, log],
    });
    running.set(unit, child);
    child.once('exit', () => {
      running.delete(unit);
      setTimeout(() => void (wanted.has(unit) && !running.has(unit) && launch(unit)), restartMs).unref();
    });
  }

  /** Of Postgres, which is no child of Patroni. The file may be left from one that was killed. */
  async function postmaster(): Promise<number[]> {
    const file = join(srv, 'postgres/data/postmaster.pid');
    if (!existsSync(file)) return [];
    const pid = Number(readFileSync(file, 'utf8').split('\n')[0]);
    return (await argumentsOf(pid))[0]?.endsWith('/postgres') ? [pid] : [];
  }
  async function processesOf(unit: UnitName): Promise<number[]> {
    const pid = running.get(unit)?.pid;
    const tops = [...(pid === undefined ? [] : [pid]), ...(unit === 'patroni' ? await postmaster() : [])];
    return withChildren(tops);
  }
  async function end(find: () => Promise<number[]>): Promise<void> {
    // A stopped process starts no other. The second search finds those that were started before the stop.
    for (const pid of await find()) signal(pid, 'SIGSTOP');
    const pids = await find();
    for (const pid of pids) signal(pid, 'SIGKILL');
    await Promise.all(pids.map((pid) => waitForEnd(pid, 10_000)));
  }

  return {
    name,
    /** Its /srv/quotes, as this program sees it. */
    srv,
    units,
    start(unit: UnitName): void {
      wanted.add(unit);
      if (!running.has(unit)) launch(unit);
    },
    /** SIGKILL of everything that belongs to the unit; it stays away until `start`. */
    async kill(unit: UnitName): Promise<void> {
      wanted.delete(unit);
      await end(() => processesOf(unit));
    },
    /** As `systemctl restart`. */
    async restart(unit: UnitName): Promise<void> {
      const { pid } = running.get(unit) ?? {};
      wanted.delete(unit);
      if (pid !== undefined) {
        signal(pid, 'SIGTERM');
        await waitForEnd(pid, 90_000);
      }
      this.start(unit);
    },
    async freeze(unit: UnitName): Promise<void> {
      for (let round = 0; round < 2; round += 1)
        for (const pid of await processesOf(unit)) signal(pid, 'SIGSTOP');
    },
    async thaw(unit: UnitName): Promise<void> {
      for (const pid of await processesOf(unit)) signal(pid, 'SIGCONT');
    },
    /** SIGKILL of Postgres alone: Patroni continues. */
    killPostgres: () => end(async () => withChildren(await postmaster())),
    /** Runs a command to its end, as this user. @returns its standard output. @throws with its output when it fails. */
    async run(
      user: string,
      argv: readonly string[],
      environment: Readonly<Record<string, string>> = {},
      input = '',
    ): Promise<string> {
      const command = promisify(execFile)('nsenter', enter(user, argv), {
        env: environmentOf(environment),
        maxBuffer: 16 * 1024 * 1024,
      });
      command.child.stdin?.end(input);
      const { stdout } = await command.catch((error: Error & { stdout?: string; stderr?: string }) => {
        throw new Error(`${argv.join(' ')}: ${error.message}\n${error.stdout}\n${error.stderr}`);
      });
      return stdout;
    },
    /** What the unit has printed. */
    log(unit: UnitName): string {
      const file = join(directory, `${name}-${unit}.log`);
      return existsSync(file) ? readFileSync(file, 'utf8') : '';
    },
  };
}

/** Waits until a condition holds, and asks five times a second: each answer costs a connection. @throws after `timeoutMs`. */
export const untilTrue = (what: string, timeoutMs: number, holds: Parameters<typeof until>[0]) =>
  until(holds, what, timeoutMs, 200);
