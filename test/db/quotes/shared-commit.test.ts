import { createSharedCommit, NotStoredError, QueueFullError } from '../../../db/quotes/store';

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

test('nobody is answered before the statement has ended', async () => {
  const { commit } = store();
  const start = performance.now();
  await commit.add('a');
  expect(performance.now() - start).toBeGreaterThanOrEqual(19);
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
    await new Promise((resolve) => setTimeout(resolve, deadlineMs / 3));
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
  const many = Promise.all(['d', 'e', 'f'].map((row) => commit.add(row)));
  await many;
  expect(statements).toEqual([['a'], ['b', 'c'], ['d', 'e', 'f']]);
  release();
  await first;
  await commit.idle();
});
