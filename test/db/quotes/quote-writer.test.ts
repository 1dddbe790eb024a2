import type { Database } from '../../../db/postgres/connect';
import { createQuoteWriter, QUOTE_STATEMENTS_AT_A_TIME } from '../../../db/quotes/store';
import { openDatabaseAt, useDatabase } from '../../support/database';
import { quoteRow } from '../../support/values';

const reader = useDatabase();
let inserts: Database;
let writer: ReturnType<typeof createQuoteWriter>;

beforeAll(() => {
  inserts = openDatabaseAt(reader.url, {
    poolSize: QUOTE_STATEMENTS_AT_A_TIME,
    applicationName: 'test quotes',
  });
  writer = createQuoteWriter({ sql: inserts.sql, deadlineMs: 10_000 });
});
afterAll(() => inserts.close());

async function stored(...numbers: number[]): Promise<string[]> {
  const ids = numbers.map((number) => quoteRow(number).quoteId);
  const rows = await reader.sql`select quote_id from quotes where quote_id = any(${ids}) order by 1`;
  return rows.map((found) => String(found['quote_id']));
}

test('rows are stored as they were handed over, letters beyond ASCII included', async () => {
  const response = JSON.stringify({ text: 'from £38.58, “quoted” 𝄞' });
  await Promise.all([
    writer.add(quoteRow(1, { response, merchantReference: null, depositPence: 5 })),
    writer.add(quoteRow(2)),
  ]);
  const rows = await reader.sql`
    select response, merchant_reference, deposit_pence, loan_pence from quotes
    where quote_id in (${quoteRow(1).quoteId}, ${quoteRow(2).quoteId}) order by quote_id`;
  expect(rows).toEqual([
    { response, merchant_reference: null, deposit_pence: '5', loan_pence: '120000' },
    {
      response: '{"success":true}',
      merchant_reference: 'basket 1',
      deposit_pence: null,
      loan_pence: '120000',
    },
  ]);
});

test('rows that the database refuses fail alone, each with its code; those of the same statement are stored', async () => {
  const outcomes = await Promise.allSettled([
    writer.add(quoteRow(3)),
    writer.add(quoteRow(1)),
    writer.add(quoteRow(4, { response: 'a\u0000b' })),
    writer.add(quoteRow(5)),
    writer.add(quoteRow(9, { merchantFinanceUrl: 'https://shop.example/\u001Ffinance' })),
  ]);
  expect(outcomes).toMatchObject([
    { status: 'fulfilled' },
    { status: 'rejected', reason: { name: 'PostgresError', code: '23505' } },
    { status: 'rejected', reason: { code: '22021' } },
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: '22000' } },
  ]);
  expect(await stored(3, 4, 5, 9)).toEqual([quoteRow(3).quoteId, quoteRow(5).quoteId]);
});

test('a statement whose session is ended fails all of its rows and is not repeated; the next is stored', async () => {
  await reader.sql.begin(async (tx) => {
    await tx`lock table quotes in access exclusive mode`;
    const held = Promise.allSettled([writer.add(quoteRow(6)), writer.add(quoteRow(7))]);
    const end = () => reader.sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'test quotes' and wait_event_type = 'Lock'`;
    while ((await end()).count === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    const code = expect.stringMatching(/^(57P01|CONNECTION_CLOSED)$/);
    const lost = { status: 'rejected', reason: { code } };
    expect(await held).toMatchObject([lost, lost]);
  });
  await writer.add(quoteRow(8));
  expect(await stored(6, 7, 8)).toEqual([quoteRow(8).quoteId]);
});
