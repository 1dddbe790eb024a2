import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from './compose';
import type { Started, StandIn } from './stand-in';

/** Where the stand-in has the data; in the image PGDATA says so. */
export const DATA = '/var/lib/postgresql/data';
const DEADLINE_MS = 60_000;

interface Restoring {
  readonly engine: StandIn;
  readonly postgres: Service;
  readonly migrate: Service;
  readonly postgresBin: string;
  readonly operate: (...args: string[]) => Promise<Record<string, string>>;
  readonly start: (service: Service) => Started;
  readonly untilHealthy: (started: Started) => Promise<void>;
  readonly completed: (job: Started) => Promise<void>;
  /** Stops everything that runs. */
  readonly stop: () => Promise<void>;
}

/** As docs/operations/backup.md has it: a backup, a change after it, a restore of everything that was archived. @throws when the change is lost. */
export async function backUpAndRestore(server: Started, what: Restoring): Promise<Started> {
  const { engine, postgres, migrate, operate, start, untilHealthy, completed, postgresBin } = what;
  const psql = (on: Started, statement: string) =>
    within(on, postgresBin, 'psql', '-XAtqc', statement, 'postgres').trim();
  console.log(within(server, postgresBin, 'bash', '/backup.sh').trim());
  await operate('partners', 'create', '--name', 'After the backup', '--id', 'P100002');
  const file = psql(server, 'select pg_walfile_name(pg_switch_wal())');
  await until(
    () => psql(server, `select last_archived_wal >= '${file}' from pg_stat_archiver`) === 't',
    'the log is archived',
  );
  await what.stop();
  const argv = ['bash', '/restore.sh'];
  await completed(
    engine.start(postgres, {
      argv,
      environment: { PGDATA: DATA },
      onOutput: (text) => console.log(text.trim()),
    }),
  );
  const restored = start(postgres);
  await untilHealthy(restored);
  await until(() => psql(restored, 'select pg_is_in_recovery()') === 'f', 'the restored server takes writes');
  await completed(start(migrate));
  const partner = await operate('partners', 'show', 'P100002');
  if (partner['name'] !== 'After the backup') throw new Error('what came after the backup was not restored');
  console.log('  what came after the backup is there');
  return restored;
}

/** In the container of Postgres, as its user and by its socket, as `docker compose exec --user postgres postgres` does. */
function within({ child }: Started, postgresBin: string, ...command: string[]): string {
  const target = ['--target', String(child.pid), '--mount', '--net', '--root', '--wd', '--'];
  const user = ['setpriv', '--reuid', 'postgres', '--regid', 'postgres', '--clear-groups', '--'];
  return execFileSync('nsenter', [...target, ...user, ...command], {
    env: { PATH: `${postgresBin}:/usr/bin:/bin`, PGHOST: '/var/run/postgresql', PGUSER: 'postgres' },
    stdio: ['ignore', 'pipe', 'inherit'],
  }).toString();
}

async function until(holds: () => boolean, what: string): Promise<void> {
  const deadline = performance.now() + DEADLINE_MS;
  while (!holds()) {
    if (performance.now() > deadline) throw new Error(`not in time: ${what}`);
    await sleep(300);
  }
}
