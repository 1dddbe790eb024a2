import { startTestApi, type TestApi } from '../support/api';
import { startOwnPostgres, type OwnPostgres } from '../support/postgres-server';
import { provideSmallDisk, type SmallDisk } from '../support/small-disk';
import { migrateWithLogins } from '../support/roles';

jest.setTimeout(90_000);

let disk: SmallDisk;
let server: OwnPostgres;
let api: TestApi;
beforeAll(async () => {
  disk = await provideSmallDisk();
  console.log(`disk full by: ${disk.kind}`);
  server = await startOwnPostgres({ max_wal_size: '64MB', min_wal_size: '32MB' }, disk.parent);
  await migrateWithLogins(server.url);
  api = await startTestApi({ databaseUrl: server.url });
});
afterAll(async () => {
  await api?.close();
  await server?.close();
  await disk?.close();
});

const stored: string[] = [];

async function quote(): Promise<number> {
  const answer = await api.quote();
  if (answer.status === 200) stored.push(answer.body.data.service_quote_id);
  else expect(answer).toMatchObject({ status: 500, body: { error: { code: 'INTERNAL_SERVER_ERROR' } } });
  return answer.status;
}

/** Copies a quote until the table is past what a limit of the file size leaves it. */
async function grow(): Promise<void> {
  const { sql } = api.database;
  const [row] = await sql`select tableoid::regclass::text as name from quotes limit 1`;
  for (let at = 0, size = 0; size < 17 * 1024 ** 2; at += 5_000) {
    await sql.unsafe(`insert into quotes select left(q.quote_id, 14) || lpad(n::text, 16, '0'), q.created_at,
      q.partner_id, q.key_id, q.environment, q.merchant_id, q.loan_pence, q.deposit_pence, q.merchant_finance_url,
      q.merchant_reference, q.request_id, q.response, q.fitted
      from generate_series(${at}, ${at + 4_999}) n, (select * from quotes where quote_id = '${stored[0]}') q`);
    const [grown] = await sql`select pg_relation_size(${String(row?.['name'])}::regclass)::int as size`;
    size = Number(grown?.['size']);
  }
}

test('a full disk: writes fail with 500, reads go on, and all is well once there is room', async () => {
  const { sql } = api.database;
  const startedAt = async () => String((await sql`select pg_postmaster_start_time() as at`)[0]?.['at']);
  expect(await quote()).toBe(200);
  await grow();
  const started = await startedAt();

  await disk.fill(server.pid());
  // Pages that were begun still take some.
  let failed = 0;
  for (let tries = 0; tries < 2_000 && failed < 5; tries += 1)
    failed = (await quote()) === 500 ? failed + 1 : 0;
  expect(failed).toBe(5);
  const faults = api.logs.filter((line) => line.includes('"level":50'));
  expect(faults.join()).toMatch(disk.kind === 'tmpfs' ? /No space left on device/ : /File too large/);
  // A merchant that is not in memory is looked for in Postgres, and a key of one's own goes on to be one.
  expect(await api.quote({ merchant_id: 'M999999' })).toMatchObject({ status: 404 });
  expect((await sql`select 1 from quotes where quote_id = ${stored[0] ?? ''}`).count).toBe(1);
  expect((await fetch(`http://127.0.0.1:${api.internalPort}/ready`)).status).toBe(200);

  await disk.free(server.pid());
  for (let tries = 0; tries < 20; tries += 1) expect(await quote()).toBe(200);
  expect(await startedAt()).toBe(started);
  expect((await sql`select 1 from quotes where quote_id = any(${stored})`).count).toBe(stored.length);
});
