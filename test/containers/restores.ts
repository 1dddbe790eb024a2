import { deepStrictEqual, match, ok, rejects } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../testbed/until';
import { MACHINE } from './partner';
import { reckon, type Scene } from './scene';

const partners = async ({ project }: Scene) => project.sql('select name from partners order by 1');
/** Runs a script, which has no single quotes in it, as the account of the server. */
const inPostgres = ({ project }: Scene, script: string) =>
  project.run(`docker compose exec -T --user postgres postgres bash -c '${script}'`);
const archiveOf = async (scene: Scene) => (await inPostgres(scene, 'ls /backups/archive')).split('\n');

/** Longest wait for the archive, in milliseconds. */
const ARCHIVE_MS = 120_000;

/** Ends the file of the log that is being written, and waits until it is in the archive. */
async function archived(scene: Scene): Promise<void> {
  // Without anything new in it the file would not end.
  await scene.project.sql("select pg_create_restore_point('test')");
  const [file] = await scene.project.sql('select pg_walfile_name(pg_switch_wal())');
  await until(async () => (await archiveOf(scene)).includes(`${file}.gz`), 'the log is archived', ARCHIVE_MS);
}

/** Seven nights are kept, and of the archive what the oldest of them needs. */
async function nights(scene: Scene): Promise<void> {
  const { project } = scene;
  // Older than every base backup: no restore needs it.
  await archived(scene);
  const [unneeded = ''] = await archiveOf(scene);
  await project.page('docker compose exec -T --user postgres postgres bash /scripts/backup.sh');
  // As if of the seven nights before, and one that was interrupted.
  await inPostgres(
    scene,
    `cd /backups; base=$(ls base); mkdir base/new.part; for night in 1 2 3 4 5 6 7; do
      old=2020-01-0\${night}T011500Z; cp -r base/$base base/$old; touch dump/$old.dump; done`,
  );
  // Names have the second.
  await sleep(1_100);
  await project.page(
    '15 1 * * *  cd /srv/finance && docker compose exec -T --user postgres postgres bash /scripts/backup.sh',
    { '15 1 * * *  cd /srv/finance': `cd ${project.folder}` },
  );
  await project.page(
    "docker compose exec postgres bash -c 'ls -l /backups/base /backups/dump; du -sh /backups/archive'",
  );
  for (const kind of ['base', 'dump']) {
    const left = (await inPostgres(scene, `ls /backups/${kind}`)).split('\n');
    const old = [3, 4, 5, 6, 7].map((night) => `2020-01-0${night}`);
    deepStrictEqual([left.slice(0, 5).map((name) => name.slice(0, 10)), left.length], [old, 7]);
    ok(
      left.slice(5).every((name) => !/^2020|part$/.test(name)),
      left.join(),
    );
  }
  const log = (await archiveOf(scene)).filter((name) => /^[0-9A-F]{24}\.gz$/.test(name));
  const oldest = '/backups/base/2020-01-03T011500Z/base.tar.gz';
  const label = await inPostgres(scene, `tar -xzOf ${oldest} backup_label`);
  deepStrictEqual([log[0], log.includes(unneeded)], [`${/file ([0-9A-F]{24})/.exec(label)?.[1]}.gz`, false]);
  const metric = await inPostgres(scene, 'cat /backups/metrics/backup.prom');
  match(metric, /^pfqs_backup_completed_timestamp_seconds \d{10}$/);

  // The archive takes the same file twice, and another of that name never.
  const [name = ''] = log.map((one) => one.replace('.gz', ''));
  const again = `bash /scripts/archive.sh /backups/copy ${name}`;
  await inPostgres(scene, `gzip -cd /backups/archive/${name}.gz >/backups/copy && ${again}`);
  await rejects(inPostgres(scene, `echo other >/backups/copy; ${again}`), /is there, and is another file/);
}

/** An archive that cannot be written shows in the metric of the alert, and ends by itself. */
async function failingArchive(scene: Scene): Promise<void> {
  const ask = `fetch('http://127.0.0.1:8081/metrics').then(async (page) => console.log(await page.text()))`;
  const failing = async () => {
    const page = await scene.project.run(`docker compose exec -T worker-1 node -e "${ask}"`);
    return Number(/^pfqs_archive_failing_seconds (\S+)$/m.exec(page)?.[1]) > 0;
  };
  await inPostgres(scene, 'mv /backups/archive /backups/away');
  await scene.project.sql("select pg_create_restore_point('test')");
  await scene.project.sql('select pg_switch_wal()');
  await until(failing, 'the archive fails', ARCHIVE_MS);
  await inPostgres(scene, 'mv /backups/away /backups/archive');
  await until(async () => !(await failing()), 'the archive works again', ARCHIVE_MS);
}

/** A mistake is undone to the moment before it; then a lost server comes back, and then the dump. */
export async function restores(scene: Scene): Promise<void> {
  const { project, outside, credentials, answered, figures } = scene;
  await reckon(scene);
  // As whoever watches the server makes one; the owner of the database may not.
  await project.sql('create extension pg_stat_statements');
  await nights(scene);
  await failingArchive(scene);
  await project.ops("partners create --name 'After the backup'");
  const before = await partners(scene);
  await sleep(1_100);
  const [moment = ''] = await project.sql(
    "select to_char(now() at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS') || ' UTC'",
  );
  await sleep(1_100);
  await project.ops("partners create --name 'A mistake'");
  await archived(scene);
  const inVolume = 'docker compose run --rm --no-deps --entrypoint bash postgres';
  const restore = `${inVolume} /scripts/restore.sh`;
  const running = /Postgres is running: stop it first/;
  match((await project.try(restore)).out, running);
  // At the address that it was given nobody answers, but the server of these data runs.
  await rejects(inPostgres(scene, 'POSTGRES_HOST=127.0.0.2 PGPORT=1 bash /scripts/restore.sh'), running);
  await project.page('docker compose stop');
  match((await project.try(`${restore} yesterdayish`)).out, /'yesterdayish' is no moment/);
  const early = await project.try(`${restore} '2019-12-31 00:00 UTC'`);
  match(early.out, /there is no base backup from before 2019-12-31/);
  await project.page(
    "docker compose run --rm --no-deps --entrypoint bash postgres /scripts/restore.sh '2026-11-21 11:59:30 UTC'",
    { '2026-11-21 11:59:30 UTC': moment },
  );
  await project.page('docker compose up -d --wait postgres');
  match(
    await project.page(
      String.raw`docker compose logs postgres | grep 'recovery stopping\|archive recovery complete'`,
    ),
    /recovery stopping before commit/,
  );
  await project.page('docker compose run --rm migrate');
  await project.page('docker compose run --rm --no-deps ops secrets check');
  await project.page('docker compose up -d --wait api-1 api-2 proxy');
  deepStrictEqual(await partners(scene), before);
  await project.page('docker compose up -d --wait');
  match(await inPostgres(scene, 'ls $(dirname $PGDATA)'), /\.before-/);

  // The server is lost: all that was archived comes back, on the log of the restored one.
  await project.ops("partners create --name 'The last one'");
  await archived(scene);
  const last = await partners(scene);
  await project.run('docker compose stop');
  await project.run(`${inVolume} -c 'rm -rf "$PGDATA"'`);
  match(await project.run(restore), /is in place; start Postgres, which replays the log/);
  await project.run('docker compose up -d --wait');
  deepStrictEqual(await partners(scene), last);

  await project.page('docker compose stop worker-1 worker-2 api-1 api-2 proxy');
  await project.page(
    "docker compose exec postgres psql -U postgres -v ON_ERROR_STOP=1 -c 'ALTER DATABASE quotes RENAME TO quotes_before' -c 'CREATE DATABASE quotes OWNER quotes' -c 'REVOKE CONNECT ON DATABASE quotes FROM PUBLIC'",
  );
  await project.page('docker compose exec postgres bash /scripts/init.sh withhold');
  const dump = await project.page("docker compose exec --user postgres postgres bash -c 'ls /backups/dump'");
  await project.page(
    'docker compose exec --user postgres postgres pg_restore --exit-on-error --single-transaction --no-owner --no-acl --role=quotes --dbname=quotes /backups/dump/2026-11-21T011702Z.dump',
    { '2026-11-21T011702Z.dump': dump.split('\n').at(-1) ?? '' },
  );
  await project.page('docker compose run --rm migrate');
  await project.page('docker compose up -d --wait api-1 api-2 proxy');
  await project.page('docker compose up -d --wait');
  deepStrictEqual(await partners(scene), ['Example Ltd']);
  const quoted = await outside.quote(credentials.key, MACHINE.ipv4);
  deepStrictEqual(quoted.status, 200, JSON.stringify(quoted.body));
  answered.push(quoted.body.data.service_quote_id);
  figures.restored = true;
  await reckon(scene);
}
