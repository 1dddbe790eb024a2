import type {
  Claim,
  ClaimedNotification,
  ClaimOptions,
  DueQueue,
  Queue,
  Sweep,
} from '../db/notifications/claim';
import { queueName } from '../db/notifications/notification';
import { startLoop } from '../timing/timing';
import { createClaimPace, createStartLimit, type StartLimit } from './pace';
import type { StartDelivery } from './start-delivery';

/** A claimed row whose workflow was not started is due again after this lease. */
const LEASE_MS = 10_000;
/** A failed start is tried again after this, so Temporal gets one round of starts a second. */
const RETRY_MS = 1_000;
/** Starts that failed within this time of each other are repeated by one claim. */
const RETRY_GATHER_MS = 20;
/** Pause before a queue is claimed again that another claim had, or for which no slot was free. */
const AGAIN_MS = 20;
/** What another worker has left undone for so long is claimed here. */
const GRACE_MS = 1_000;
/**
 * A queue of another worker in which everything waits is looked at again after this, and then after twice the time each
 * time, up to the longest: its own worker looks each second.
 */
const FOREIGN_REST_MS = 1_000;
const LONGEST_FOREIGN_REST_MS = 8_000;
/** While this worker has more to do than it can, each so many claims one is for queues of others, which may be lost. */
const FOREIGN_TURN = 5;
/** While others are due, each so many claims one is for slow endpoints. */
const SLOW_TURN = 2;
/** Claims remembered, to know the queue of an attempt that ends. */
const MOST_REMEMBERED = 10_000;
/** Started deliveries are noted together this often: well within the lease. */
const NOTES_GATHER_MS = 1_000;

interface DispatcherDeps {
  readonly claim: (options: Omit<ClaimOptions, 'slotsOf'>) => Promise<Claim>;
  /** Looks for queues with something due. */
  readonly sweep: (after: Queue) => Promise<Sweep>;
  /** Whether the queue belongs to this worker. */
  readonly isMine: (queue: Queue) => boolean;
  /** Milliseconds between two starts for the endpoint of a queue; 0: they need not be apart. */
  readonly apartMs: (queue: Queue) => number;
  /** Whether deliveries may start here. */
  readonly enabled: () => boolean;
  /** How many more may be claimed now. */
  readonly room: () => number;
  readonly markStarted: (started: readonly ClaimedNotification[]) => Promise<void>;
  readonly giveBack: (claimed: readonly ClaimedNotification[], pauseMs: number) => Promise<void>;
  readonly start: StartDelivery;
  readonly onStarted: (notification: ClaimedNotification, lagMs: number) => void;
  readonly onError: (error: unknown, what: string, about?: ClaimedNotification) => void;
  readonly monotonicMs: () => number;
  /** Time between two sweeps, in milliseconds. A row whose hint was lost waits so long. */
  readonly sweepMs: number;
  readonly batch: number;
}

/**
 * Claims due notifications and starts their workflows. A dispatcher may die at any point: the row stays
 * until the delivery has ended, and is due again when its lease runs out. Starting a workflow twice
 * changes nothing. The next claim does not wait for the starts of the last one, so that one partner's
 * starts do not delay another's.
 */
export function startDispatcher(deps: DispatcherDeps) {
  const { claim, sweep, enabled, sweepMs, monotonicMs, batch } = deps;
  const unreachable = (error: unknown) => deps.onError(error, 'the dispatcher cannot reach Postgres');
  const pace = createClaimPace(monotonicMs);
  const limit = createStartLimit(batch, monotonicMs);
  const notes = createStartNotes(deps.markStarted, unreachable);
  const starts = createStarts(deps, { notes, limit }, unreachable);
  const queues = createQueues(deps);
  const next = { atMs: Number.NEGATIVE_INFINITY, after: '', contended: false };
  const room = () => Math.min(limit.most() - starts.underWay(), deps.room());
  const waitsForRoom = () => queues.anyReady() && deps.room() <= 0;

  async function look(): Promise<void> {
    // A sweep that fails is not repeated at once.
    next.atMs = monotonicMs() + sweepMs;
    const found = await sweep(next.after);
    next.after = found.after;
    queues.swept(found);
  }

  async function claimAndStart(wake: () => void): Promise<void> {
    const most = room();
    if (most <= 0) return;
    const { wanted, graceMs, limit } = queues.take(most);
    if (wanted.length === 0) return;
    const begunMs = monotonicMs();
    const claiming = claim({ limit, leaseMs: LEASE_MS, graceMs, queues: wanted });
    const { claimed, remaining } = await claiming.finally(() => pace.spent(monotonicMs() - begunMs));
    next.contended = remaining.some(({ why }) => why === 'contended');
    queues.claimed({ wanted, claimed, remaining, begunMs });
    const freed = () => queues.anyReady() && wake();
    if (claimed.length > 0) starts.begin(claimed, { retry: sweepSoon(wake), freed });
  }

  const sweepSoon = (wake: () => void) => () => {
    next.atMs = Number.NEGATIVE_INFINITY;
    wake();
  };

  const loop = startLoop({
    async round(_stopped, wake) {
      next.contended = false;
      if (!enabled()) return;
      await claimAndStart(wake);
      if (monotonicMs() >= next.atMs) await look();
      if (queues.anyReady() && room() > 0 && !next.contended) return 'again';
    },
    everyMs: () => {
      if (!enabled()) return sweepMs;
      const soonestMs = room() > 0 ? 1 : AGAIN_MS;
      const againMs = next.contended || waitsForRoom() ? AGAIN_MS : Math.max(queues.turnInMs(), soonestMs);
      return Math.max(1, Math.min(next.atMs - monotonicMs(), againMs));
    },
    onError: unreachable,
    restMs: () => pace.restMs(starts.underWay()),
  });

  return {
    /** Something is due in this queue. */
    hear: (queue: Queue): void => {
      if (queues.hear(queue)) loop.wake();
    },
    /** Something may be due in any queue, or queues belong to other workers now. */
    wake: (): void => sweepSoon(() => loop.wake())(),
    /** An attempt was recorded, or a notification ended without one. Another one may have the slot. */
    attemptEnded: (notificationId?: string): void => {
      if (notificationId === undefined) return;
      notes.remove(notificationId);
      if (queues.ended(notificationId)) loop.wake();
    },
    stop: async (): Promise<void> => {
      await loop.stop();
      await starts.finish();
      await notes.write();
    },
  };
}

/** Which queues to claim next: what hints, sweeps, claims and ended attempts have shown. */
function createQueues({
  isMine,
  apartMs,
  monotonicMs,
}: Pick<DispatcherDeps, 'isMine' | 'apartMs' | 'monotonicMs'>) {
  /** In their turn. */
  const ready = { own: new Set<Queue>(), foreign: new Set<Queue>() };
  /** This worker's, of slow endpoints, with when one more of each may start. */
  const slow = new Map<Queue, number>();
  const lastStartMs = new Map<Queue, number>();
  /** What is due there waits for a slot or an earlier event. */
  const waiting = new Set<Queue>();
  const rests = new Map<Queue, { readonly untilMs: number; readonly forMs: number }>();
  const queueOf = new Map<string, Queue>();
  /** When an attempt of a queue last ended. A claim that began earlier may not have seen the end. */
  const endedMs = new Map<Queue, number>();
  let claims = 0;

  function add(queue: Queue): void {
    const apart = apartMs(queue);
    if (!isMine(queue)) ready.foreign.add(queue);
    else if (apart === 0) ready.own.add(queue);
    else slow.set(queue, (lastStartMs.get(queue) ?? Number.NEGATIVE_INFINITY) + apart);
  }
  function turnInMs(): number {
    let firstMs = Number.POSITIVE_INFINITY;
    for (const atMs of slow.values()) firstMs = Math.min(firstMs, atMs);
    return firstMs - monotonicMs();
  }
  const restsUntilMs = (queue: Queue) => rests.get(queue)?.untilMs ?? Number.NEGATIVE_INFINITY;

  function rest(queue: Queue): void {
    const last = rests.get(queue)?.forMs ?? FOREIGN_REST_MS / 2;
    const forMs = Math.min(2 * last, LONGEST_FOREIGN_REST_MS);
    rests.set(queue, { untilMs: monotonicMs() + forMs, forMs });
  }

  /** One notification of each. */
  function takeSlow(most: number) {
    const nowMs = monotonicMs();
    const wanted = [...slow.keys()].filter((queue) => (slow.get(queue) ?? 0) <= nowMs).slice(0, most);
    for (const queue of wanted) {
      slow.delete(queue);
      lastStartMs.set(queue, nowMs);
    }
    return { wanted, limit: wanted.length, graceMs: 0 };
  }

  function remember(claimed: readonly ClaimedNotification[]): void {
    for (const one of claimed) queueOf.set(one.notificationId, queueName(one));
    for (const id of queueOf.keys()) {
      if (queueOf.size <= MOST_REMEMBERED) break;
      queueOf.delete(id);
    }
  }

  return {
    anyReady: () => ready.own.size + ready.foreign.size > 0 || turnInMs() <= 0,
    /** Until one of a slow endpoint may start; infinite when none is due. */
    turnInMs,
    /** @returns whether it is this worker's */
    hear(queue: Queue): boolean {
      const mine = isMine(queue);
      if (mine) add(queue);
      return mine;
    },
    /** @returns whether something waits in its queue */
    ended(notificationId: string): boolean {
      const queue = queueOf.get(notificationId);
      if (queue === undefined) return false;
      queueOf.delete(notificationId);
      endedMs.set(queue, monotonicMs());
      if (!waiting.delete(queue)) return false;
      rests.delete(queue);
      add(queue);
      return true;
    },
    swept({ due, complete }: Sweep): void {
      const nowMs = monotonicMs();
      const again: readonly DueQueue[] = complete
        ? []
        : [...waiting].map((queue) => ({ queue, dueForMs: GRACE_MS }));
      waiting.clear();
      endedMs.clear();
      lastStartMs.clear();
      for (const set of [ready.own, ready.foreign])
        for (const queue of set) if (isMine(queue) !== (set === ready.own)) set.delete(queue);
      for (const queue of slow.keys()) if (!isMine(queue)) slow.delete(queue);
      for (const { queue, dueForMs } of [...due, ...again])
        if (isMine(queue) || (dueForMs >= GRACE_MS && restsUntilMs(queue) <= nowMs)) add(queue);
      for (const [queue, { untilMs }] of rests)
        if (untilMs < nowMs - LONGEST_FOREIGN_REST_MS) rests.delete(queue);
    },
    /** Takes the next queues, at most so many, and tells how many notifications of them to claim. */
    take(most: number): Pick<ClaimOptions, 'limit' | 'graceMs'> & { readonly wanted: readonly Queue[] } {
      claims += 1;
      const othersDue = ready.own.size + ready.foreign.size > 0;
      if (turnInMs() <= 0 && (!othersDue || claims % SLOW_TURN === 0)) return takeSlow(most);
      const others = ready.own.size === 0 || (ready.foreign.size > 0 && claims % FOREIGN_TURN === 0);
      const from = others ? ready.foreign : ready.own;
      const wanted = [...from].slice(0, most);
      for (const queue of wanted) from.delete(queue);
      return { wanted, limit: most, graceMs: others ? GRACE_MS : 0 };
    },
    claimed(of: Claim & { readonly wanted: readonly Queue[]; readonly begunMs: number }): void {
      remember(of.claimed);
      const left = new Map(of.remaining.map(({ queue, why }) => [queue, why]));
      for (const queue of of.wanted) {
        const why = left.get(queue);
        const mayHaveSlot = (endedMs.get(queue) ?? Number.NEGATIVE_INFINITY) >= of.begunMs;
        if (why !== 'waits') rests.delete(queue);
        else if (!isMine(queue)) rest(queue);
        if (why === 'more' || why === 'contended' || (why === 'waits' && mayHaveSlot)) add(queue);
        else if (why === 'waits') waiting.add(queue);
      }
    },
  };
}

function createStarts(
  { start, giveBack, onStarted, onError, monotonicMs }: DispatcherDeps,
  { notes, limit }: { readonly notes: StartNotes; readonly limit: StartLimit },
  unreachable: (error: unknown) => void,
) {
  const starting = new Set<ClaimedNotification>();
  const rounds = new Set<Promise<void>>();
  let retrying: NodeJS.Timeout | undefined;

  async function startOne(one: ClaimedNotification, claimedMs: number, freed: () => void): Promise<void> {
    notes.expect(one);
    const begunMs = monotonicMs();
    try {
      await start(one);
    } catch (error) {
      notes.remove(one.notificationId);
      throw error;
    } finally {
      starting.delete(one);
      limit.ended(monotonicMs() - begunMs);
    }
    notes.add(one);
    onStarted(one, one.ageMs + monotonicMs() - claimedMs);
    // Room for another, perhaps of another partner. After a failed start nothing is claimed before the retry.
    freed();
  }

  async function startAll(
    claimed: readonly ClaimedNotification[],
    then: { readonly retry: () => void; readonly freed: () => void },
  ): Promise<void> {
    const claimedMs = monotonicMs();
    const results = await Promise.allSettled(claimed.map((one) => startOne(one, claimedMs, then.freed)));
    const failed = claimed.filter((_, at) => results[at]?.status === 'rejected');
    const [fault] = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    );
    if (failed.length === 0) return;
    onError(fault, `${failed.length} deliveries could not be started`, failed[0]);
    await giveBack(failed, RETRY_MS);
    retrying ??= setTimeout(() => {
      retrying = undefined;
      then.retry();
    }, RETRY_MS + RETRY_GATHER_MS);
  }

  return {
    underWay: () => starting.size,
    begin(...[claimed, then]: Parameters<typeof startAll>): void {
      for (const one of claimed) starting.add(one);
      const round: Promise<void> = startAll(claimed, then)
        .catch(unreachable)
        .finally(() => rounds.delete(round));
      rounds.add(round);
    },
    async finish(): Promise<void> {
      await Promise.all(rounds);
      clearTimeout(retrying);
    },
  };
}

type StartNotes = ReturnType<typeof createStartNotes>;

/**
 * Notes started deliveries in the database, at most once a second. Most first attempts end before that
 * and need no note. A lost note means a second start, which changes nothing.
 */
function createStartNotes(markStarted: DispatcherDeps['markStarted'], onError: (error: unknown) => void) {
  /** Starts under way. An attempt may end before Temporal has answered the start. */
  const expected = new Set<string>();
  const started = new Map<string, ClaimedNotification>();
  let timer: NodeJS.Timeout | undefined;

  async function write(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const unwritten = [...started.values()];
    started.clear();
    if (unwritten.length > 0) await markStarted(unwritten).catch(onError);
  }
  return {
    expect: ({ notificationId }: ClaimedNotification): void => void expected.add(notificationId),
    add(one: ClaimedNotification): void {
      if (!expected.delete(one.notificationId)) return;
      started.set(one.notificationId, one);
      timer ??= setTimeout(() => void write(), NOTES_GATHER_MS);
    },
    remove(notificationId: string): void {
      expected.delete(notificationId);
      started.delete(notificationId);
    },
    write,
  };
}
