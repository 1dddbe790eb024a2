import { createPartner } from '../../../db/catalogue/partners';
import { listProducts } from '../../../db/catalogue/products';
import { checkSession } from '../../../db/postgres/connect';
import { migrateDatabase } from '../../../db/postgres/migrate';
import { startTestApi } from '../../support/api';
import { openDatabaseAt, useDatabase } from '../../support/database';
import { addMerchant } from '../../support/merchants';
import { migrationsWith } from '../../support/migrations';
import { until } from '../../../testbed/until';

/** Whoever administers a server may have given it, or the database, other defaults, for other software. */
const DEFAULTS = {
  array_nulls: 'off',
  bytea_output: 'escape',
  client_min_messages: 'error',
  DateStyle: 'German',
  default_transaction_isolation: 'serializable',
  extra_float_digits: '-15',
  idle_session_timeout: '1ms',
  lock_timeout: '3s',
  row_security: 'off',
  search_path: 'elsewhere',
  standard_conforming_strings: 'off',
  statement_timeout: '3s',
  transaction_timeout: '3s',
};

const database = useDatabase();
const nameOf = (url: string) => new URL(url).pathname.slice(1);
async function setDefaults(name: string): Promise<void> {
  for (const [setting, value] of Object.entries(DEFAULTS))
    await database.sql.unsafe(`alter database ${name} set ${setting} = '${value}'`);
}
beforeAll(() => setDefaults(nameOf(database.url)));

test('a partner gets a quote, and reads its notifications', async () => {
  const api = await startTestApi({ databaseUrl: database.url });
  try {
    const inMemory = async () => (await api.metric('pfqs_catalogue_trusted')) === 1;
    await until(inMemory, 'keys are found in memory', 10_000);
    expect(await api.quote()).toMatchObject({ status: 200 });
    expect(await api.get('/v1/notifications')).toMatchObject({ status: 200 });
  } finally {
    await api.close();
  }
});

test('a session whose settings a pooler keeps from Postgres is none to work with', async () => {
  await checkSession(database.sql, 3_000);
  // As PgBouncer keeps them with `ignore_startup_parameters`.
  const behind = openDatabaseAt(`${database.url}?client_connection_check_interval=0`);
  await expect(checkSession(behind.sql, 3_000)).rejects.toThrow('not to a pooler such as PgBouncer');
  await behind.close();
});

test('days are read as they were stored', async () => {
  const beside = openDatabaseAt(database.url);
  const definition = { validFrom: '2026-01-31', validTo: null };
  await addMerchant(beside, 'M300001', { products: [definition] });
  const filter = { merchantId: 'M300001', limit: 9 };
  expect(await listProducts(beside.db, filter)).toMatchObject([{ definition }]);
  await beside.close();
});

test('texts are null or not as they were sent, and a first migration stores them as they are written', async () => {
  const name = `${nameOf(database.url)}_first`;
  await database.sql.unsafe(`create database ${name}`);
  await setDefaults(name);
  const first = openDatabaseAt(database.url.replace(nameOf(database.url), name));
  await migrateDatabase(first.url);
  const formats = await first.sql`select distinct reference_format as format from lenders order by 1`;
  expect(formats.map(({ format }) => format as string)).toEqual(['[A-Za-z0-9]{8}', '\\d{7}']);
  expect([...(await first.sql`select ${[null, 'null']}::text[] as texts`)]).toEqual([
    { texts: [null, 'null'] },
  ]);
  await first.close();
  await database.sql.unsafe(`drop database ${name} with (force)`);
});

test('partners that are created at once have ids of their own', async () => {
  const operators = Array.from({ length: 4 }, () => openDatabaseAt(database.url));
  const created = await Promise.all(
    operators.map(({ db }) => createPartner(db, { partnerId: null, name: 'Example' })),
  );
  expect(new Set(created.map(({ partnerId }) => partnerId)).size).toBe(4);
  await Promise.all(operators.map((operator) => operator.close()));
});

test('a migration takes as long as it needs, and says what it has changed', async () => {
  const folder = await migrationsWith(`create table slow as select pg_sleep(3.5)::text as slept;
    do $$ begin raise warning using errcode = 'PFQ01', message = 'rows'; end $$;`);
  await expect(migrateDatabase(database.url, folder)).resolves.toMatchObject({ changes: ['rows'] });
  const [table] = await database.sql`select to_regclass('slow') is not null as made`;
  expect(table).toEqual({ made: true });
});

test.each([
  [3_000, '10s'],
  [60_000, '1min'],
])(
  'beside statements of up to %i ms a transaction may be idle for %s',
  async (statementTimeoutMs, longest) => {
    const beside = openDatabaseAt(database.url, { statementTimeoutMs });
    const [row] = await beside.sql`show idle_in_transaction_session_timeout`;
    expect(row).toEqual({ idle_in_transaction_session_timeout: longest });
    await beside.close();
  },
);
