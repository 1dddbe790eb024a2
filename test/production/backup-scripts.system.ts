import { chmod, copyFile, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import postgres from 'postgres';
import { databaseFigures } from '../../db/figures';
import { connectDatabase } from '../../db/postgres/connect';
import { migrateDatabase } from '../../db/postgres/migrate';
import { startTestApi, type TestApi } from '../support/api';
import { composeServices } from '../support/compose-file';
import { until } from '../support/delivery';
import { fileNeeds } from '../support/needs';
import { startPackagedPostgres, type PackagedPostgres } from '../support/packaged-postgres';
import { asRole } from '../support/roles';

fileNeeds('Postgres');

/**
 * deploy/postgres/{archive,backup,restore}.sh, as docs/operations/backup.md has them run in the compose stack, on a server with the archive settings of
 * docker-compose.yml. Only folder, address and login differ, which come from the environment.
 */
const root = join(__dirname, '../..');
let server: PackagedPostgres;
let api: TestApi;
let admin: postgres.Sql;
const folder = () => join(server.folder, 'backups');

/** The settings of the archive, as the compose file gives them to Postgres. */
function archiveSettings(scripts: string): Record<string, string> {
  const { command = [] } = composeServices()['postgres'] ?? {};
  const settings = command.filter((word) => word.startsWith('archive_')).map((word) => word.split(/=(.*)/s));
  expect(settings.map(([name]) => name)).toEqual(['archive_mode', 'archive_timeout', 'archive_command']);
  const { archive_command: archive = '', ...rest } = Object.fromEntries(settings) as Record<string, string>;
  return {
    ...rest,
    archive_command: `BACKUPS=${scripts}/backups ${archive.replace('/archive.sh', `${scripts}/archive.sh`)}`,
  };
}

/** Runs a script as the account of the server. @returns what it printed. @throws when it ends with anything but 0. */
async function run(script: string, environment: Record<string, string> = {}, ...args: string[]) {
  const { hostname, port, username, password } = new URL(server.adminUrl);
  const all = {
    PATH: `${server.programs}:/usr/bin:/bin`,
    BACKUPS: folder(),
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: password,
    POSTGRES_HOST: hostname,
    ...environment,
  };
  const assignments = Object.entries(all).map(([name, value]) => `${name}=${value}`);
  return server.run('/usr/bin/env', ...assignments, 'bash', join(server.folder, script), ...args);
}
const names = async (kind: 'archive' | 'base' | 'dump' | 'metrics') =>
  (await readdir(join(folder(), kind))).toSorted();
const connectAdmin = () => postgres(server.adminUrl, { max: 1, onnotice: () => undefined });
const quoteId = async () => String((await api.quote()).body.data.service_quote_id);
const storedIds = async () =>
  (await api.database.sql`select quote_id from quotes order by 1`).map((row) => String(row['quote_id']));

/** Ends the file of the log that is being written, and waits until it is in the archive. */
async function archived(): Promise<void> {
  // Without anything new in it the file would not end.
  await admin`select pg_create_restore_point('test')`;
  const [switched] = await admin<{ file: string }[]>`select pg_walfile_name(pg_switch_wal()) as file`;
  await until(
    async () => (await names('archive')).includes(`${switched?.file}.gz`),
    'the log is archived',
    60_000,
  );
}

/** Puts the backup in place and starts the server on it. */
async function restore(data: string, ...moment: string[]): Promise<string> {
  const said = await run('restore.sh', { PGDATA: data }, ...moment);
  await server.start(data);
  admin = connectAdmin();
  const promoted = async () => (await admin`select pg_is_in_recovery() as still`)[0]?.['still'] === false;
  await until(promoted, 'the restored server takes writes', 60_000);
  api = await startTestApi({ databaseUrl: server.url, keys: api.keys });
  return said;
}
const letGo = () => Promise.all([api.close(), admin.end()]);

beforeAll(async () => {
  server = await startPackagedPostgres((directory) => archiveSettings(directory));
  for (const script of ['archive.sh', 'backup.sh', 'restore.sh'])
    await copyFile(join(root, 'deploy/postgres', script), join(server.folder, script));
  // As the service `backups` of the compose file does, as the account of the server.
  await server.run(
    '/bin/mkdir',
    '-p',
    ...['archive', 'base', 'dump', 'metrics'].map((name) => join(folder(), name)),
  );
  await migrateDatabase(server.url);
  api = await startTestApi({ databaseUrl: server.url });
  admin = connectAdmin();
}, 120_000);
afterAll(async () => {
  await admin?.end();
  await api?.close();
  await server?.close();
});

let early: string;
let kept: string;
let moment: string;
let late: string;

test('nightly backups under load: seven are kept, of the archive what the oldest needs, and Prometheus knows the time', async () => {
  early = await quoteId();
  // Older than every base backup, so no restore needs it.
  await archived();
  const [unneeded = ''] = await names('archive');
  let over = false;
  const load = (async () => {
    while (!over) await quoteId();
  })();
  try {
    expect(await run('backup.sh')).toMatch(/^backup: .* is complete: \S+ base backup, \S+ dump$/m);
    // As if of the seven nights before.
    const [base = ''] = await names('base');
    for (let night = 1; night <= 7; night += 1) {
      const old = `2020-01-0${night}T011500Z`;
      await server.run('/bin/cp', '-r', join(folder(), 'base', base), join(folder(), 'base', old));
      await server.run('/usr/bin/touch', join(folder(), 'dump', `${old}.dump`));
    }
    // Left by one that was interrupted.
    await server.run('/bin/mkdir', join(folder(), 'base', 'new.part'));
    await archived();
    // Names have the second.
    await new Promise((resolve) => setTimeout(resolve, 1_100));
    await run('backup.sh');
  } finally {
    over = true;
    await load;
  }
  for (const kind of ['base', 'dump'] as const) {
    const left = await names(kind);
    expect(left.slice(0, 5)).toEqual(
      [3, 4, 5, 6, 7].map((night) => expect.stringContaining(`2020-01-0${night}`)),
    );
    expect(left.slice(5)).toEqual([1, 2].map(() => expect.not.stringMatching(/^2020|part$/)));
  }
  expect(await names('archive')).not.toContain(unneeded);
  const log = (await names('archive')).filter((name) => /^[0-9A-F]{24}\.gz$/.test(name));
  const [first = ''] = await names('base');
  const label = await server.run(
    '/bin/tar',
    '-xzOf',
    join(folder(), 'base', first, 'base.tar.gz'),
    'backup_label',
  );
  expect(log[0]).toBe(`${/file ([0-9A-F]{24})/.exec(label)?.[1]}.gz`);
  expect(await readFile(join(folder(), 'metrics/backup.prom'), 'utf8')).toMatch(
    /^pfqs_backup_completed_timestamp_seconds \d{10}\n$/,
  );
}, 300_000);

test('an archive that cannot be written shows in the metric of the alert, which a worker may read, and ends by itself', async () => {
  const worker = connectDatabase({
    url: asRole(server.url, 'worker'),
    poolSize: 1,
    applicationName: 'test',
    statementTimeoutMs: 30_000,
  });
  try {
    expect(await databaseFigures(worker.db)).toEqual({ monthsAhead: 12, archiveFailingMs: 0 });
    const away = `${join(folder(), 'archive')}-away`;
    await rename(join(folder(), 'archive'), away);
    await admin`select pg_create_restore_point('test')`;
    await admin`select pg_switch_wal()`;
    const failing = async () => (await databaseFigures(worker.db)).archiveFailingMs > 0;
    await until(failing, 'the archive fails', 60_000);
    await rename(away, join(folder(), 'archive'));
    await until(async () => !(await failing()), 'the archive works again', 120_000);
  } finally {
    await worker.close();
  }
}, 240_000);

test('the archive takes the same file twice, and another of that name never', async () => {
  const [log = ''] = await names('archive');
  const file = join(server.folder, log.replace('.gz', ''));
  const archive = (path: string) => run('archive.sh', {}, path, log.replace('.gz', ''));
  await writeFile(file, gunzipSync(await readFile(join(folder(), 'archive', log))));
  await chmod(file, 0o644);
  await archive(file);
  await writeFile(file, 'something else');
  await expect(archive(file)).rejects.toThrow('is there, and is another file');
}, 60_000);

test('it restores nothing over a server that runs, nor to what is no moment or lies before every backup', async () => {
  const data = { PGDATA: join(server.folder, 'nowhere') };
  await expect(run('restore.sh', data)).rejects.toThrow('Postgres is running: stop it first');
  // Nobody answers at the address that it was given.
  const elsewhere = { PGDATA: server.dataDir(), POSTGRES_HOST: '127.0.0.2', PGPORT: '1' };
  await expect(run('restore.sh', elsewhere)).rejects.toThrow('Postgres is running: stop it first');
  const stopped = { ...data, POSTGRES_HOST: '127.0.0.2', PGPORT: '1' };
  await expect(run('restore.sh', stopped, 'yesterdayish')).rejects.toThrow("'yesterdayish' is no moment");
  await expect(run('restore.sh', stopped, '2019-12-31 00:00 UTC')).rejects.toThrow(
    'there is no base backup from before 2019-12-31',
  );
});

test('a mistake is undone to the moment before it, and the data that were there are kept', async () => {
  kept = await quoteId();
  const [at] = await admin<{ at: string }[]>`select clock_timestamp()::text as at`;
  moment = at?.at ?? '';
  await api.database.sql`truncate quotes cascade`;
  late = await quoteId();
  await archived();
  await letGo();
  await server.run('pg_ctl', '-D', server.dataDir(), '-m', 'fast', '-w', 'stop');

  const data = join(server.folder, 'restored', 'docker');
  await server.run('/bin/mkdir', '-p', data);
  await server.run('/usr/bin/touch', join(data, 'of the lost server'));
  const said = await restore(data, moment);
  expect(said).toMatch(/the data that were there are in \S+docker\.before-/);
  const [before = ''] = (await readdir(dirname(data))).filter((name) => name.startsWith('docker.before-'));
  expect(await readdir(join(dirname(data), before))).toEqual(['of the lost server']);
  const ids = await storedIds();
  expect(ids).toEqual(expect.arrayContaining([early, kept]));
  expect(ids).not.toContain(late);
}, 240_000);

test('a server that is lost comes back up to the last minute that was archived, on the log of the restored one', async () => {
  await run('backup.sh');
  const after = await quoteId();
  await archived();
  await letGo();
  await server.lose();
  const data = join(server.folder, 'restored-again', 'docker');
  expect(await restore(data)).toContain('is in place; start Postgres, which replays the log');
  const ids = await storedIds();
  expect(ids).toEqual(expect.arrayContaining([early, kept, after]));
  expect((await api.quote()).status).toBe(200);
}, 240_000);
