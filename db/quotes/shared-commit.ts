/** The queue is full. Refusing at once is better than answering late. */
export class QueueFullError extends Error {
  override readonly name = 'QueueFullError';
}

/** The writer stopped waiting. The row was not stored, or it is not known whether it was. */
export class NotStoredError extends Error {
  override readonly name = 'NotStoredError';
}

interface SharedCommitOptions<Row> {
  readonly write: (rows: readonly Row[]) => PromiseLike<unknown>;
  /** Whether an error is the fault of a row's data, so that the others may be tried again. */
  readonly isDataFault: (error: unknown) => boolean;
  readonly mostRows: number;
  readonly mostWaiting: number;
  readonly mostBatches: number;
  /** With this many rows a second statement starts beside one under way. Fewer wait up to `waitMs`. */
  readonly worthwhileRows: number;
  readonly waitMs: number;
  readonly deadlineMs: number;
}

/** A class, because closures for every row cost measurably at thousands of rows a second. */
class Waiter<Row> {
  gaveUp = false;

  constructor(
    readonly row: Row,
    readonly untilMs: number,
    readonly resolve: () => void,
    readonly reject: (error: unknown) => void,
  ) {}
}

/**
 * Lets concurrent inserts share a commit: rows that arrive while a statement is under way go into the
 * next one together. A batch that fails on its data is tried again row by row. Any other error may have
 * happened after the commit, so it fails every row of the batch, and nothing is repeated. A row whose
 * writer gave up while it waited is not stored.
 */
export function createSharedCommit<Row>(options: SharedCommitOptions<Row>) {
  const { write, isDataFault, mostRows, mostWaiting, mostBatches, deadlineMs } = options;
  const { worthwhileRows, waitMs } = options;
  let waiting: Waiter<Row>[] = [];
  let batches = 0;
  let scheduled = false;
  let timer: NodeJS.Timeout | undefined;
  const idlers: (() => void)[] = [];
  const unsettled = new Set<Waiter<Row>>();
  let deadline: NodeJS.Timeout | undefined;

  /** One timer serves all rows. A timer for each would be a twentieth of the cost of a quote. */
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

  /** The timer runs on after its row is stored, and does not keep the process alive. */
  function startDeadline(ms: number): void {
    deadline ??= setTimeout(giveUpLate, ms).unref();
  }

  function settle(batch: readonly Waiter<Row>[], end: (waiter: Waiter<Row>) => void): void {
    for (const waiter of batch) {
      unsettled.delete(waiter);
      end(waiter);
    }
  }

  /** Starts a statement at the end of this turn, so that rows that arrived together share it. */
  function schedule(evenForFew = false): void {
    if (scheduled || batches >= mostBatches || waiting.length === 0) return;
    if (batches > 0 && waiting.length < worthwhileRows && !evenForFew) {
      timer ??= setTimeout(endWait, waitMs);
      return;
    }
    scheduled = true;
    setImmediate(start);
  }

  function endWait(): void {
    timer = undefined;
    schedule(true);
  }

  function start(): void {
    scheduled = false;
    const live = waiting.filter((waiter) => !waiter.gaveUp);
    const batch = live.slice(0, mostRows);
    waiting = live.slice(mostRows);
    if (batch.length === 0) return tellIdlers();
    batches += 1;
    void store(batch).finally(() => {
      batches -= 1;
      schedule();
      tellIdlers();
    });
    schedule();
  }

  const isIdle = () => batches === 0 && waiting.length === 0;

  function tellIdlers(): void {
    if (isIdle()) for (const idler of idlers.splice(0)) idler();
  }

  async function store(batch: readonly Waiter<Row>[]): Promise<void> {
    try {
      await write(batch.map((waiter) => waiter.row));
      settle(batch, (waiter) => waiter.resolve());
    } catch (error) {
      if (batch.length > 1 && isDataFault(error)) {
        for (const waiter of batch) if (!waiter.gaveUp) await store([waiter]);
      } else {
        settle(batch, (waiter) => waiter.reject(error));
      }
    }
  }

  return {
    /**
     * Resolves when the row is durably stored.
     * @throws QueueFullError, NotStoredError or the error of the database
     */
    add: (row: Row): Promise<void> => {
      if (waiting.length >= mostWaiting)
        return Promise.reject(new QueueFullError(`${mostWaiting} rows are already waiting to be stored`));
      return new Promise((resolve, reject) => {
        const waiter = new Waiter(row, performance.now() + deadlineMs, resolve, reject);
        waiting.push(waiter);
        unsettled.add(waiter);
        startDeadline(deadlineMs);
        schedule();
      });
    },
    waiting: () => waiting.length,
    idle: () => (isIdle() ? Promise.resolve() : new Promise<void>((resolve) => idlers.push(resolve))),
  };
}
