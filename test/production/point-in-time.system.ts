import { appendFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import postgres from 'postgres';
import { migrateDatabase } from '../../db/postgres/migrate';
import { startTestApi, type TestApi } from '../support/api';
import { until } from '../support/delivery';
import { startPackagedPostgres, type PackagedPostgres } from '../support/packaged-postgres';
import { fileNeeds } from '../support/needs';

fileNeeds('Postgres');

/** As docs/operations/backup.md has it: a base backup, the log archived, and a restore to the moment before a mistake. */
let server: PackagedPostgres;
let api: TestApi;
let admin: postgres.Sql;

beforeAll(async () => {
  server = await startPackagedPostgres((folder) => ({
    archive_mode: 'on',
    archive_command: `mkdir -p ${folder}/archive && cp %p ${folder}/archive/%f`,
    archive_timeout: '60s',
  }));
  await migrateDatabase(server.url);
  api = await startTestApi({ databaseUrl: server.url });
  admin = postgres(server.adminUrl, { max: 1, onnotice: () => undefined });
}, 90_000);
afterAll(async () => {
  await admin?.end();
  await api?.close();
  await server?.close();
});

const quoteId = async () => String((await api.quote()).body.data.service_quote_id);

/** Ends the segment of the log that is being written, and waits until it lies in the archive. */
async function archived(): Promise<void> {
  const [switched] = await admin<{ file: string }[]>`select pg_walfile_name(pg_switch_wal()) as file`;
  const there = async () => {
    const [row] = await admin<
      { last: string | null }[]
    >`select last_archived_wal as last from pg_stat_archiver`;
    return (row?.last ?? '') >= (switched?.file ?? '');
  };
  await until(there, 'the log is archived', 30_000);
}

test('a base backup and the archived log restore every quote up to a chosen moment', async () => {
  const base = join(server.folder, 'base');
  const before = await quoteId();
  await server.run('pg_basebackup', `--pgdata=${base}`, '--checkpoint=fast', `--dbname=${server.adminUrl}`);
  const after = await quoteId();
  const [moment] = await admin<{ at: string }[]>`select clock_timestamp()::text as at`;
  await api.database.sql`truncate quotes`;
  const late = await quoteId();
  await archived();

  await Promise.all([api.close(), admin.end()]);
  await server.lose();
  await writeFile(join(base, 'recovery.signal'), '');
  await appendFile(
    join(base, 'postgresql.auto.conf'),
    [
      `restore_command = 'cp ${server.folder}/archive/%f %p'`,
      `recovery_target_time = '${moment?.at}'`,
      `recovery_target_action = 'promote'`,
    ].join('\n'),
  );
  await server.start(base);
  admin = postgres(server.adminUrl, { max: 1, onnotice: () => undefined });
  const promoted = async () => (await admin`select pg_is_in_recovery() as still`)[0]?.['still'] === false;
  await until(promoted, 'the restored server takes writes', 30_000);

  api = await startTestApi({ databaseUrl: server.url, keys: api.keys });
  const kept = await api.database.sql`select quote_id from quotes order by 1`;
  expect(kept.map((row) => String(row['quote_id']))).toEqual([before, after]);
  expect(kept.map((row) => String(row['quote_id']))).not.toContain(late);
  expect((await api.quote()).status).toBe(200);
}, 90_000);
