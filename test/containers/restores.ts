import { deepStrictEqual, match, ok } from 'node:assert';
import { setTimeout as sleep } from 'node:timers/promises';
import { MACHINE } from './partner';
import { reckon, type Scene } from './scene';

const partners = async ({ project }: Scene) => project.sql('select name from partners order by 1');

/** A mistake is undone to the moment before it; then the dump comes back. */
export async function restores(scene: Scene): Promise<void> {
  const { project, outside, credentials, answered, figures } = scene;
  await reckon(scene);
  await project.page('docker compose exec -T --user postgres postgres bash /backup.sh');
  await project.page(
    '15 1 * * *  cd /srv/finance && docker compose exec -T --user postgres postgres bash /backup.sh',
    {
      '15 1 * * *  cd /srv/finance': `cd ${project.folder}`,
    },
  );
  await project.page(
    "docker compose exec postgres bash -c 'ls -l /backups/base /backups/dump; du -sh /backups/archive'",
  );
  await project.ops("partners create --name 'After the backup'");
  const before = await partners(scene);
  await sleep(1_100);
  const [moment = ''] = await project.sql(
    "select to_char(now() at time zone 'utc', 'YYYY-MM-DD HH24:MI:SS') || ' UTC'",
  );
  await sleep(1_100);
  await project.ops("partners create --name 'A mistake'");
  const [file = ''] = await project.sql('select pg_walfile_name(pg_switch_wal())');
  for (
    let tries = 0;
    (await project.sql(`select last_archived_wal >= '${file}' from pg_stat_archiver`))[0] !== 't';
    tries += 1
  ) {
    ok(tries < 120, 'the log is not archived');
    await sleep(300);
  }
  const restore = 'docker compose run --rm --no-deps --entrypoint bash postgres /restore.sh';
  match((await project.try(restore)).out, /Postgres is running: stop it first/);
  await project.page('docker compose stop');
  await project.page(
    "docker compose run --rm --no-deps --entrypoint bash postgres /restore.sh '2026-11-21 11:59:30 UTC'",
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

  await project.page('docker compose stop worker-1 worker-2 api-1 api-2 proxy');
  await project.page(
    "docker compose exec postgres psql -U postgres -v ON_ERROR_STOP=1 -c 'ALTER DATABASE quotes RENAME TO quotes_before' -c 'CREATE DATABASE quotes OWNER quotes' -c 'REVOKE CONNECT ON DATABASE quotes FROM PUBLIC'",
  );
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
