import type { Claim, ClaimedNotification, ClaimOptions } from '../db/notifications/claim';
import { startLoop } from '../timing/timing';
import type { StartDelivery } from './start-delivery';

/** A claimed row whose workflow was not started is due again after this lease. */
const LEASE_MS = 10_000;
/** A failed start is tried again after this, so Temporal gets one round of starts a second. */
const RETRY_MS = 1_000;
/** Starts that failed within this time of each other are repeated by one claim. */
const RETRY_GATHER_MS = 20;
/** Sweep interval while a due notification waits for a slot that another worker may free. */
const WAITING_SWEEP_MS = 1_000;
/** Sweep interval after another claim had locked an endpoint and may have left due rows. */
const CONTENDED_SWEEP_MS = 20;
/** Started deliveries are noted together this often: well within the lease. */
const NOTES_GATHER_MS = 1_000;

interface DispatcherDeps {
  readonly claim: (options: Omit<ClaimOptions, 'slots'>) => Promise<Claim>;
  readonly markStarted: (started: readonly ClaimedNotification[]) => Promise<void>;
  readonly giveBack: (claimed: readonly ClaimedNotification[], pauseMs: number) => Promise<void>;
  readonly start: StartDelivery;
  readonly onStarted: (notification: ClaimedNotification, lagMs: number) => void;
  readonly onError: (error: unknown, what: string, about?: ClaimedNotification) => void;
  readonly monotonicMs: () => number;
  /** Longest time between two claims, in milliseconds. A row whose hint was lost waits so long. */
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
  const { claim, sweepMs, monotonicMs, batch } = deps;
  const unreachable = (error: unknown) => deps.onError(error, 'the dispatcher cannot reach Postgres');
  const pace = createClaimPace(monotonicMs);
  const notes = createStartNotes(deps.markStarted, unreachable);
  const starts = createStarts(deps, notes, unreachable);
  const seen = {
    left: { waiting: false, contended: false, turn: null } as Omit<Claim, 'claimed'>,
    /** When an attempt last ended. A claim that began earlier may not have seen the end. */
    attemptEndedMs: Number.NEGATIVE_INFINITY,
  };

  async function claimAndStart(wake: () => void): Promise<'again' | void> {
    const limit = batch - starts.underWay();
    if (limit === 0) {
      seen.left = { ...seen.left, waiting: true, contended: false };
      return;
    }
    const begunMs = monotonicMs();
    const claiming = claim({ limit, leaseMs: LEASE_MS, turn: seen.left.turn });
    const { claimed, ...left } = await claiming.finally(() => pace.spent(monotonicMs() - begunMs));
    seen.left = left;
    if (left.waiting && seen.attemptEndedMs >= begunMs) wake();
    if (claimed.length === 0) return;
    starts.begin(claimed, { retry: wake, done: () => seen.left.waiting && wake() });
    if (left.waiting) return 'again';
  }

  const loop = startLoop({
    round: (_stopped, wake) => claimAndStart(wake),
    everyMs: () => {
      const { contended, waiting } = seen.left;
      return Math.min(sweepMs, contended ? CONTENDED_SWEEP_MS : waiting ? WAITING_SWEEP_MS : sweepMs);
    },
    onError: unreachable,
    restMs: () => pace.restMs(starts.underWay()),
  });

  return {
    wake: (): void => loop.wake(),
    /** An attempt was recorded, or a notification ended without one. Another one may have the slot. */
    attemptEnded: (notificationId?: string): void => {
      if (notificationId !== undefined) notes.remove(notificationId);
      seen.attemptEndedMs = monotonicMs();
      if (seen.left.waiting) loop.wake();
    },
    async stop(): Promise<void> {
      await loop.stop();
      await starts.finish();
      await notes.write();
    },
  };
}

function createStarts(
  { start, giveBack, onStarted, onError, monotonicMs }: DispatcherDeps,
  notes: StartNotes,
  unreachable: (error: unknown) => void,
) {
  const starting = new Set<ClaimedNotification>();
  const rounds = new Set<Promise<void>>();
  let retrying: NodeJS.Timeout | undefined;

  async function startOne(one: ClaimedNotification, claimedMs: number): Promise<void> {
    notes.expect(one);
    try {
      await start(one);
    } catch (error) {
      notes.remove(one.notificationId);
      throw error;
    }
    notes.add(one);
    onStarted(one, one.ageMs + monotonicMs() - claimedMs);
  }

  async function startAll(
    claimed: readonly ClaimedNotification[],
    then: { readonly retry: () => void; readonly done: () => void },
  ): Promise<void> {
    const claimedMs = monotonicMs();
    const results = await Promise.allSettled(claimed.map((one) => startOne(one, claimedMs)));
    for (const one of claimed) starting.delete(one);
    const failed = claimed.filter((_, at) => results[at]?.status === 'rejected');
    const [fault] = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    );
    if (failed.length === 0) return then.done();
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

/** Share of the time that claims may take in the long run. */
const CLAIM_SHARE = 1 / 4;
/** Milliseconds by which claims may exceed that share: a dozen claims on a quiet machine. */
const FREE_MS = 20;
/** A larger excess is forgotten, so that one slow claim delays the next ones by a second at most. */
const LONGEST_LEAD_MS = 100;
/** Longest rest, in milliseconds. */
const LONGEST_REST_MS = 50;
/** With so many starts under way, a claimed notification would wait for Temporal anyway. */
const MANY_STARTS = 4;
/**
 * Shortest time between two claims then, in milliseconds. A claim of one costs nearly as much as a
 * claim of ten.
 */
const CLAIM_GATHER_MS = 40;

/** Spaces claims under load, so that each takes more notifications at once. */
export function createClaimPace(monotonicMs: () => number) {
  const budget = { leadMs: 0, atMs: monotonicMs(), lastClaimMs: Number.NEGATIVE_INFINITY };
  const leadNow = () => {
    const nowMs = monotonicMs();
    budget.leadMs = Math.max(0, budget.leadMs - (nowMs - budget.atMs) * CLAIM_SHARE);
    budget.atMs = nowMs;
    return budget.leadMs;
  };
  return {
    spent(ms: number): void {
      budget.leadMs = Math.min(leadNow() + ms, LONGEST_LEAD_MS);
      budget.lastClaimMs = budget.atMs;
    },
    /**
     * Milliseconds until the next claim may begin, at most 50.
     * @param starting workflows that are being started.
     */
    restMs(starting: number): number {
      const forShare = (leadNow() - FREE_MS) / CLAIM_SHARE;
      const forStarts = starting < MANY_STARTS ? 0 : budget.lastClaimMs + CLAIM_GATHER_MS - budget.atMs;
      return Math.min(Math.max(0, forShare, forStarts), LONGEST_REST_MS);
    },
  };
}
