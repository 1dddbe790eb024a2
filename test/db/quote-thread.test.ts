import { connectDatabase, type Database } from '../../db/connect';
import { packValues, unpackValues } from '../../db/packed-values';
import { quoteValues, type QuoteRow } from '../../db/queries/insert-quotes';
import { openQuoteThread, type QuoteThread } from '../../db/quote-thread';
import { createTestDatabase, type TestDatabase } from '../support/database';

let clone: TestDatabase;
let database: Database;
let sql: Database['sql'];
let thread: QuoteThread;

const settings = (url: string) => ({
  url,
  poolSize: 2,
  applicationName: 'test quotes',
  statementTimeoutMs: 10_000,
});

beforeAll(async () => {
  clone = await createTestDatabase();
  database = connectDatabase({ ...settings(clone.url), applicationName: 'test' });
  ({ sql } = database);
  thread = await openQuoteThread(settings(clone.url));
});
afterAll(async () => {
  await thread.close();
  await database.close();
  await clone.close();
});

function row(number: number, fields: Partial<QuoteRow> = {}): QuoteRow {
  return {
    quoteId: `qte_${String(number).padStart(26, '0')}`,
    partnerId: 'P100001',
    keyId: 'key_1',
    environment: 'sandbox',
    merchantId: 'M100001',
    loanPence: 120_000,
    depositPence: null,
    merchantFinanceUrl: 'https://shop.example/finance',
    merchantReference: 'basket 1',
    requestId: 'rq_1',
    response: '{"success":true}',
    fitted: [],
    ...fields,
  };
}

async function stored(...numbers: number[]): Promise<string[]> {
  const ids = numbers.map((number) => row(number).quoteId);
  const rows = await sql`select quote_id from quotes where quote_id = any(${ids}) order by 1`;
  return rows.map((found) => String(found['quote_id']));
}

test('values survive the way to another thread: nulls, numbers, empty text, NUL and letters of any length', () => {
  const values = ['', null, 0, 120_000, 'a\u0000b', '£38.58 €', '𝄞 \ud800', '', null];
  expect(unpackValues(packValues(values))).toEqual(values.map((one) => (one === null ? null : String(one))));
});

test('rows are stored as they were handed over, letters beyond ASCII included', async () => {
  const response = JSON.stringify({ text: 'from £38.58, “quoted” 𝄞' });
  await thread.write(quoteValues([row(1, { response, merchantReference: null, depositPence: 5 }), row(2)]));
  const rows = await sql`
    select response, merchant_reference, deposit_pence, loan_pence from quotes
    where quote_id in (${row(1).quoteId}, ${row(2).quoteId}) order by quote_id`;
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

test('what the database refuses comes back with its code, and nothing of that statement is stored', async () => {
  const twice = quoteValues([row(3), row(1)]);
  await expect(thread.write(twice)).rejects.toMatchObject({ name: 'PostgresError', code: '23505' });
  const nul = quoteValues([row(4, { response: 'a\u0000b' }), row(5)]);
  await expect(thread.write(nul)).rejects.toMatchObject({ code: '22021' });
  await expect(thread.write(quoteValues([row(6)]))).resolves.toBeUndefined();
  expect(await stored(3, 4, 5, 6)).toEqual([row(6).quoteId]);
});

test('a statement whose session is ended is rejected, and the next one is stored', async () => {
  await sql.begin(async (tx) => {
    await tx`lock table quotes in access exclusive mode`;
    const held = thread.write(quoteValues([row(7)]));
    const outcome = held.catch((error: unknown) => error);
    const end = () => sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and application_name = 'test quotes' and wait_event_type = 'Lock'`;
    while ((await end()).count === 0) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await outcome).toMatchObject({
      code: expect.stringMatching(/^(57P01|CONNECTION_CLOSED)$/),
    });
  });
  await thread.write(quoteValues([row(8)]));
  expect(await stored(7, 8)).toEqual([row(8).quoteId]);
});

test('closing finishes what is under way', async () => {
  const other = await openQuoteThread(settings(clone.url));
  await other.write(quoteValues([row(9)]));
  const last = other.write(quoteValues([row(10)]));
  await other.close();
  await expect(last).resolves.toBeUndefined();
  expect(await stored(9, 10)).toEqual([row(9).quoteId, row(10).quoteId]);
});

test('a thread that cannot start says so', async () => {
  const unusable = { ...settings(clone.url), url: 'no address' };
  await expect(openQuoteThread(unusable)).rejects.toThrow('Invalid URL');
});
