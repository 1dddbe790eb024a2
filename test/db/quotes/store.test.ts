import type { Database } from '../../../db/postgres/connect';
import { createSharedCommit, NotStoredError, QueueFullError } from '../../../db/quotes/shared-commit';
import { createQuoteWriter, QUOTE_STATEMENTS_AT_A_TIME } from '../../../db/quotes/store';
import { openDatabaseAt, useDatabase } from '../../support/database';
import { quoteRow } from '../../../testbed/values';

describe('the statement', () => {
  const reader = useDatabase();
  let inserts: Database;
  let writer: ReturnType<typeof createQuoteWriter>;

  beforeAll(() => {
    const pool = { poolSize: QUOTE_STATEMENTS_AT_A_TIME, applicationName: 'test quotes' };
    inserts = openDatabaseAt(reader.url, pool);
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
      writer.add(quoteRow(1, { response, merchantReference: null, depositPence: 5, usedDepositPence: 7 })),
      writer.add(quoteRow(2)),
    ]);
    const rows = await reader.sql`
      select response, merchant_reference as reference, deposit_pence as deposit, used_deposit_pence as used, loan_pence as loan from quotes
      where quote_id in (${quoteRow(1).quoteId}, ${quoteRow(2).quoteId}) order by quote_id`;
    expect(rows).toEqual([
      { response, reference: null, deposit: '5', used: '7', loan: '120000' },
      { response: '{"success":true}', reference: 'basket 1', deposit: null, used: '0', loan: '120000' },
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
});

describe('a shared commit', () => {
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

  function gate() {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    return { held, release };
  }

  /** A store whose statements take 20 ms, unless they are held. */
  function store({
    held,
    ...overrides
  }: Partial<Parameters<typeof createSharedCommit<string>>[0]> & {
    held?: (nth: number) => Promise<void> | undefined;
  } = {}) {
    const statements: string[][] = [];
    const commit = createSharedCommit<string>({
      write: async (rows) => {
        statements.push([...rows]);
        await (held?.(statements.length) ?? pause(20));
      },
      isDataFault: () => false,
      mostRows: 3,
      mostWaiting: 5,
      mostBatches: 1,
      worthwhileRows: 1,
      waitMs: 25,
      deadlineMs: 1_000,
      ...overrides,
    });
    return { commit, statements };
  }

  test('rows that arrive together share a statement, up to the most it may carry', async () => {
    const { commit, statements } = store();
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((row) => commit.add(row)));
    expect(statements).toEqual([
      ['a', 'b', 'c'],
      ['d', 'e'],
    ]);
  });

  test('the queue is bounded', async () => {
    const { commit } = store();
    const adding = ['a', 'b', 'c', 'd', 'e'].map((row) => commit.add(row));
    await expect(commit.add('f')).rejects.toThrow(QueueFullError);
    await Promise.all(adding);
    await expect(commit.add('g')).resolves.toBeUndefined();
  });

  test('a row whose writer gave up while it waited is not stored', async () => {
    const { held, release } = gate();
    const { commit, statements } = store({ held: () => held, mostRows: 1, deadlineMs: 50 });
    const first = commit.add('first');
    const second = commit.add('second');
    await expect(first).rejects.toThrow(NotStoredError);
    await expect(second).rejects.toThrow(NotStoredError);
    release();
    await commit.idle();
    expect(statements).toEqual([['first']]);
  });

  test('each row has its whole deadline, however late it comes', async () => {
    const deadlineMs = 60;
    const { commit } = store({ held: () => gate().held, mostRows: 1, deadlineMs });
    const waits: number[] = [];
    const add = async (row: string) => {
      const startedAt = performance.now();
      await expect(commit.add(row)).rejects.toThrow(NotStoredError);
      waits.push(performance.now() - startedAt);
    };
    const adding: Promise<void>[] = [];
    for (const row of ['a', 'b', 'c', 'd']) {
      adding.push(add(row));
      await pause(deadlineMs / 3);
    }
    await Promise.all(adding);
    expect(waits).toHaveLength(4);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(deadlineMs - 1);
    // The timer has ended with the last of them: a later row starts it anew.
    await add('e');
  });

  test('few rows wait for the statement under way, but not for one that hangs', async () => {
    const { held, release } = gate();
    const { commit, statements } = store({
      held: (nth: number) => (nth === 1 ? held : undefined),
      mostRows: 10,
      mostWaiting: 100,
      mostBatches: 2,
      worthwhileRows: 3,
      waitMs: 500,
      deadlineMs: 5_000,
    });
    const first = commit.add('a');
    await pause(10);
    const few = Promise.all([commit.add('b'), commit.add('c')]);
    await pause(10);
    expect(statements).toEqual([['a']]);
    await few;
    expect(statements).toEqual([['a'], ['b', 'c']]);
    await Promise.all(['d', 'e', 'f'].map((row) => commit.add(row)));
    expect(statements).toEqual([['a'], ['b', 'c'], ['d', 'e', 'f']]);
    release();
    await first;
    await commit.idle();
  });
});
