/** More waits than the queue may hold: refuse at once rather than late. */
export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

/** The row was not stored, or it is not known whether it was, by the time its writer stopped waiting. */
export class NotStoredError extends Error {
  override readonly name = 'NotStoredError';
}

interface SharedCommitOptions<Row> {
  /** Writes all rows in one statement, that is one commit: all of them or none. */
  readonly write: (rows: readonly Row[]) => PromiseLike<unknown>;
  /** Whether a failure lies in the data of a row, so that nothing was stored and other rows may do better. */
  readonly isDataFault: (error: unknown) => boolean;
  /** Most rows per statement: what a statement can carry in a few milliseconds. */
  readonly mostRows: number;
  /** Most rows that may wait; beyond that `add` refuses. */
  readonly mostWaiting: number;
  /** Statements under way at a time, each on a connection of its own. */
  readonly mostBatches: number;
  /**
   * Rows for which a further statement is started beside one under way. Fewer wait for that one, as small statements cost
   * more than they win; but never longer than `waitMs`, so that one that hangs holds up nobody else. Default: 1.
   */
  readonly worthwhileRows?: number;
  /** Default: 25. */
  readonly waitMs?: number;
  /** Longest wait of one row, in milliseconds. */
  readonly deadlineMs: number;
}

/** A class, because a closure or two more for every row are felt at thousands a second. */
class Waiter<Row> {
  gaveUp = false;

  constructor(
    readonly row: Row,
    readonly untilMs: number,
    readonly resolve: () => void,
    readonly reject: (error: unknown) => void,
  ) {}
}

export interface SharedCommit<Row> {
  /** Resolves when the row is durably stored. @throws QueueFullError, NotStoredError or what the database said. */
  readonly add: (row: Row) => Promise<void>;
  readonly waiting: () => number;
  readonly idle: () => Promise<void>;
}

/**
 * Lets concurrent inserts share a commit: rows that arrive while a statement is under way go together in the next
 * one, so that a commit's disk write is paid once for many. A batch that fails on its data is tried again row by row;
 * any other failure may have happened after the commit, so it fails every row of the batch and is not repeated. A row
 * whose writer gave up while it waited is not stored.
 */
export function createSharedCommit<Row>(options: SharedCommitOptions<Row>): SharedCommit<Row> {
  const { write, isDataFault, mostRows, mostWaiting, mostBatches, deadlineMs } = options;
  const { worthwhileRows = 1, waitMs = 25 } = options;
  let waiting: Waiter<Row>[] = [];
  let batches = 0;
  let scheduled = false;
  let timer: NodeJS.Timeout | undefined;
  const idlers: (() => void)[] = [];
  /** All whose row is not stored yet, in the order of their deadlines. */
  const unsettled = new Set<Waiter<Row>>();
  let deadline: NodeJS.Timeout | undefined;

  /** One timer for all rows: one for each, made and removed with every quote, is a twentieth of what a lone quote costs. */
  function giveUpLate(): void {
    deadline = undefined;
    const now = performance.now();
    for (const waiter of unsettled) {
      if (waiter.untilMs > now) {
        startDeadline(waiter.untilMs - now);
        return;
      }
      unsettled.delete(waiter);
      waiter.gaveUp = true;
      waiter.reject(new NotStoredError(`not stored within ${deadlineMs} ms`));
    }
  }

  /** It goes on after its row is stored, and keeps no process alive. */
  function startDeadline(ms: number): void {
    deadline ??= setTimeout(giveUpLate, ms).unref();
  }

  function settle(batch: readonly Waiter<Row>[], end: (waiter: Waiter<Row>) => void): void {
    for (const waiter of batch) {
      unsettled.delete(waiter);
      end(waiter);
    }
  }

  /** Waits for the end of this turn of the event loop, so that what arrived together travels together. */
  function schedule(): void {
    if (scheduled || batches >= mostBatches || waiting.length === 0) return;
    if (batches > 0 && waiting.length < worthwhileRows) {
      timer ??= setTimeout(endWait, waitMs);
      return;
    }
    soon();
  }

  function endWait(): void {
    timer = undefined;
    if (!scheduled && batches < mostBatches && waiting.length > 0) soon();
  }

  function soon(): void {
    scheduled = true;
    setImmediate(() => {
      scheduled = false;
      start();
    });
  }

  function start(): void {
    const live = waiting.filter((waiter) => !waiter.gaveUp);
    const batch = live.slice(0, mostRows);
    waiting = live.slice(mostRows);
    if (batch.length > 0) {
      batches += 1;
      void store(batch).finally(() => {
        batches -= 1;
        schedule();
        if (batches === 0 && waiting.length === 0) for (const idler of idlers.splice(0)) idler();
      });
      schedule();
    } else if (batches === 0) for (const idler of idlers.splice(0)) idler();
  }

  async function store(batch: readonly Waiter<Row>[]): Promise<void> {
    try {
      await write(batch.map((waiter) => waiter.row));
      settle(batch, (waiter) => waiter.resolve());
    } catch (error) {
      const [first, second] = batch;
      if (first !== undefined && second !== undefined && isDataFault(error)) {
        for (const waiter of batch) if (!waiter.gaveUp) await store([waiter]);
      } else {
        settle(batch, (waiter) => waiter.reject(error));
      }
    }
  }

  return {
    add(row) {
      if (waiting.length >= mostWaiting) {
        return Promise.reject(new QueueFullError(`${mostWaiting} rows are already waiting to be stored`));
      }
      return new Promise((resolve, reject) => {
        const waiter = new Waiter(row, performance.now() + deadlineMs, resolve, reject);
        waiting.push(waiter);
        unsettled.add(waiter);
        startDeadline(deadlineMs);
        schedule();
      });
    },
    waiting: () => waiting.length,
    idle: () =>
      batches === 0 && waiting.length === 0
        ? Promise.resolve()
        : new Promise((resolve) => idlers.push(resolve)),
  };
}
