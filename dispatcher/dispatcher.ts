import {
  FIRST_TURN,
  type Claim,
  type ClaimedNotification,
  type ClaimOptions,
} from '../db/notifications/claim';
import { startLoop, type Loop } from '../timing/loop';
import type { StartDelivery } from './delivery-starter';
import { createClaimPace } from './claim-pace';
import { createStartNotes } from './start-notes';

/** A claim that was not followed by a start is due again after this: far above the deadline of a start. */
const LEASE_MS = 10_000;
/** What could not be started is tried again after this; a Temporal that is away is asked no more often. */
const PAUSE_MS = 1_000;
/** What failed at about the same time is tried again together. */
const GATHER_MS = 20;
/** While something waits that another worker's attempt may hold up, it is looked for this often at least, in milliseconds. */
const WAITING_SWEEP_MS = 1_000;
/** What is open is of this month or the last, as good as always: a claim looks into others when none has for so long, in milliseconds. */
const EVERY_MONTH_MS = 1_000;
/** Another worker's claim of an endpoint is over after a few milliseconds, and may have left something that became due meanwhile. */
const CONTENDED_SWEEP_MS = 20;

interface DispatcherDeps {
  readonly claim: (options: Omit<ClaimOptions, 'slots'>) => Promise<Claim>;
  readonly markStarted: (started: readonly ClaimedNotification[]) => Promise<void>;
  readonly giveBack: (claimed: readonly ClaimedNotification[], pauseMs: number) => Promise<void>;
  readonly start: StartDelivery;
  /** Each that has its workflow; `lagMs` is the time from its commit to the start. */
  readonly onStarted: (notification: ClaimedNotification, lagMs: number) => void;
  readonly onError: (error: unknown, what: string, about?: ClaimedNotification) => void;
  readonly monotonicMs: () => number;
  /** Longest time until what was not heard of is found, in milliseconds. */
  readonly sweepMs: number;
  readonly batch: number;
}

export interface Dispatcher {
  /** There may be something to do: look at once. */
  wake(): void;
  /** An attempt has been recorded, or its notification has ended without one: its slot, or its end, may be what something waits for. */
  attemptEnded(notificationId?: string): void;
  /** Starts nothing more; resolves when what was under way has been written down. */
  stop(): Promise<void>;
}

/**
 * Turns rows into workflows: takes what is due from Postgres, starts it, and notes it in Postgres. Whatever happens in
 * between, the row stays and is taken again; starting the same workflow twice is harmless. What one claim has brought is
 * still being started while the next is made, so that nobody waits for another partner's starts.
 */
export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  const { claim, batch, onError, sweepMs } = deps;
  /** The last claim left something due behind. */
  let waiting = false;
  let contended = false;
  /** When a claim last looked at every month, and whether it found something in an older one. */
  let everyMonthAtMs = Number.NEGATIVE_INFINITY;
  let older = false;
  let turn = FIRST_TURN;
  let starting = 0;
  /** Those whose attempts have not ended yet: an eager start may be answered later than its attempt. */
  const toNote = new Set<string>();
  const rounds = new Set<Promise<void>>();
  let claiming = false;
  /** An attempt has ended that the claim under way may not have seen. */
  let endedMeanwhile = false;
  const pace = createClaimPace(deps.monotonicMs);
  const unreachable = (error: unknown) => onError(error, 'the dispatcher cannot reach Postgres');
  const notes = createStartNotes(deps.markStarted, unreachable);

  const loop = startLoop({
    round,
    everyMs: () => Math.min(sweepMs, contended ? CONTENDED_SWEEP_MS : waiting ? WAITING_SWEEP_MS : sweepMs),
    onError: unreachable,
    restMs: () => pace.restMs(starting),
  });

  async function round(): Promise<'again' | void> {
    const limit = batch - starting;
    if (limit === 0) {
      // The end of a start wakes us.
      waiting = true;
      contended = false;
      return;
    }
    const nowMs = deps.monotonicMs();
    const everyMonth = older || nowMs - everyMonthAtMs >= EVERY_MONTH_MS;
    if (everyMonth) everyMonthAtMs = nowMs;
    const { claimed, ...left } = await atItsPace(() => claim({ limit, leaseMs: LEASE_MS, turn, everyMonth }));
    ({ waiting, contended, older, turn } = left);
    if (waiting && endedMeanwhile) loop.wake();
    if (claimed.length === 0) return;
    starting += claimed.length;
    const own: Promise<void> = start(claimed)
      .catch(unreachable)
      .finally(() => rounds.delete(own));
    rounds.add(own);
    if (waiting) return 'again';
  }

  async function atItsPace<T>(task: () => Promise<T>): Promise<T> {
    const begunMs = deps.monotonicMs();
    claiming = true;
    endedMeanwhile = false;
    try {
      return await task();
    } finally {
      claiming = false;
      pace.spent(deps.monotonicMs() - begunMs);
    }
  }

  async function start(claimed: readonly ClaimedNotification[]): Promise<void> {
    const claimedMs = deps.monotonicMs();
    for (const { notificationId } of claimed) toNote.add(notificationId);
    const startOne = async (one: ClaimedNotification) => {
      await deps.start(one);
      deps.onStarted(one, one.ageMs + deps.monotonicMs() - claimedMs);
    };
    const results = await Promise.allSettled(claimed.map(startOne));
    starting -= claimed.length;
    const failed = claimed.filter((_one, at) => results[at]?.status === 'rejected');
    const fault = results.find((result) => result.status === 'rejected');
    if (fault !== undefined)
      onError(fault.reason, `${failed.length} deliveries could not be started`, failed[0]);
    // While Temporal is away, what was given back below is often enough.
    else if (waiting) loop.wake();
    notes.add(claimed.filter((one) => toNote.delete(one.notificationId) && !failed.includes(one)));
    await deps.giveBack(failed, PAUSE_MS);
    if (failed.length > 0) tryAgain.set();
  }

  /** Not left to the sweep, which may be a minute. */
  const tryAgain = wakeAfter(loop, PAUSE_MS + GATHER_MS);
  return {
    wake: () => loop.wake(),
    attemptEnded(notificationId) {
      if (notificationId !== undefined && !toNote.delete(notificationId)) notes.leaveOut(notificationId);
      if (claiming) endedMeanwhile = true;
      else if (waiting) loop.wake();
    },
    async stop() {
      await loop.stop();
      await Promise.all(rounds);
      tryAgain.clear();
      await notes.flush();
    },
  };
}

/** A timer that wakes the loop; set again while it runs, it stays as it is. */
function wakeAfter(loop: Loop, ms: number) {
  let timer: NodeJS.Timeout | undefined;
  return {
    set() {
      timer ??= setTimeout(() => {
        timer = undefined;
        loop.wake();
      }, ms);
    },
    clear: () => clearTimeout(timer),
  };
}
