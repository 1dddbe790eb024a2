import type { Claim, ClaimedNotification, ClaimOptions } from '../db/notifications/claim';
import { startLoop } from '../timing/loop';
import { createClaimPace } from './claim-pace';
import type { StartDelivery } from './delivery-starter';
import { createStartNotes } from './start-notes';

/** A claim that was not followed by a start is due again after this: far above the deadline of a start. */
const LEASE_MS = 10_000;
/** What could not be started is tried again after this; a Temporal that is away is asked no more often. */
const PAUSE_MS = 1_000;
/** What failed at about the same time is tried again together. */
const GATHER_MS = 20;
/** While something waits that another worker's attempt may hold up, it is looked for this often at least, in milliseconds. */
const WAITING_SWEEP_MS = 1_000;
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
  readonly attemptEnded: (notificationId?: string) => void;
  /** Starts nothing more; resolves when what was under way has been written down. */
  stop(): Promise<void>;
}

/**
 * Turns rows into workflows: takes what is due from Postgres, starts it, and notes it in Postgres. Whatever happens in
 * between, the row stays and is taken again; starting the same workflow twice is harmless. What one claim has brought is
 * still being started while the next is made, so that nobody waits for another partner's starts.
 */
export function startDispatcher(deps: DispatcherDeps): Dispatcher {
  const { claim, batch, onError, sweepMs, monotonicMs } = deps;
  const unreachable = (error: unknown) => onError(error, 'the dispatcher cannot reach Postgres');
  const pace = createClaimPace(monotonicMs);
  const notes = createStartNotes(deps.markStarted, unreachable);
  /** What the last claim left behind. */
  let left: Omit<Claim, 'claimed'> = { waiting: false, contended: false, turn: null };
  /** When an attempt ended last: a claim under way may not have seen that. */
  let endedMs = Number.NEGATIVE_INFINITY;
  const starting = new Set<ClaimedNotification>();
  const rounds = new Set<Promise<void>>();
  let retry: NodeJS.Timeout | undefined;

  async function start(claimed: readonly ClaimedNotification[], wake: () => void): Promise<void> {
    const claimedMs = monotonicMs();
    const failed: ClaimedNotification[] = [];
    const started: ClaimedNotification[] = [];
    const faults: unknown[] = [];
    notes.expect(claimed);
    const startOne = async (one: ClaimedNotification) => {
      try {
        await deps.start(one);
        started.push(one);
        deps.onStarted(one, one.ageMs + monotonicMs() - claimedMs);
      } catch (error) {
        failed.push(one);
        faults.push(error);
      }
    };
    await Promise.all(claimed.map(startOne));
    for (const one of claimed) starting.delete(one);
    notes.forget(failed);
    notes.add(started);
    if (failed.length === 0) {
      if (left.waiting) wake();
      return;
    }
    onError(faults[0], `${failed.length} deliveries could not be started`, failed[0]);
    // What was given back is tried again together, and not left to the sweep, which may be a minute.
    await deps.giveBack(failed, PAUSE_MS);
    retry ??= setTimeout(() => {
      retry = undefined;
      wake();
    }, PAUSE_MS + GATHER_MS);
  }

  const loop = startLoop({
    async round(_stopped, wake) {
      const limit = batch - starting.size;
      if (limit === 0) {
        // The end of a start wakes us.
        left = { ...left, waiting: true, contended: false };
        return;
      }
      const begunMs = monotonicMs();
      const { claimed, ...rest } = await claim({ limit, leaseMs: LEASE_MS, turn: left.turn }).finally(() =>
        pace.spent(monotonicMs() - begunMs),
      );
      left = rest;
      if (left.waiting && endedMs >= begunMs) wake();
      if (claimed.length === 0) return;
      for (const one of claimed) starting.add(one);
      const own: Promise<void> = start(claimed, wake)
        .catch(unreachable)
        .finally(() => rounds.delete(own));
      rounds.add(own);
      if (left.waiting) return 'again';
    },
    everyMs: () =>
      Math.min(sweepMs, left.contended ? CONTENDED_SWEEP_MS : left.waiting ? WAITING_SWEEP_MS : sweepMs),
    onError: unreachable,
    restMs: () => pace.restMs(starting.size),
  });

  return {
    wake: () => loop.wake(),
    attemptEnded: (notificationId) => {
      if (notificationId !== undefined) notes.leaveOut(notificationId);
      endedMs = monotonicMs();
      if (left.waiting) loop.wake();
    },
    async stop() {
      await loop.stop();
      await Promise.all(rounds);
      clearTimeout(retry);
      await notes.flush();
    },
  };
}
