import { claimDue, FIRST_TURN, markStarted, type ClaimedNotification } from '../../db/notifications/claim';
import { openAttempt } from '../../db/notifications/open-attempt';
import { openFirstAttempt } from '../../db/notifications/open-first-attempt';
import { recordAttempt } from '../../db/notifications/record-attempt';
import { recordDelivered } from '../../db/notifications/record-delivered';
import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import { postgresCpuMs } from '../cpu';
import { storeChange } from '../delivery/feed';
import { median } from '../rounds';
import type { Side } from './side';

const DELIVERED = { kind: 'delivered', httpStatus: 200, durationMs: 20 } as const;
const FAILED: DeliveryOutcome = {
  kind: 'failed',
  failure: 'http_status',
  httpStatus: 503,
  durationMs: 20,
  retryAfterMs: null,
};
/** One in so many fails once, and is delivered then. */
const FAILS = 4;
const AT_ONCE = 8;
const address = '192.0.2.1';

/** Medians in milliseconds; CPU of Postgres in milliseconds for each notification, from its storing to its count. */
export interface DeliveryFigures {
  readonly storeMs: number;
  /** As a dispatcher makes them: one in a second looks at every month. */
  readonly claimMs: number;
  readonly claimEveryMonthMs: number;
  /** Open and record together: in one statement each, as the fast path has it, and otherwise. */
  readonly fastAttemptMs: number;
  readonly attemptMs: number;
  readonly cpuMs: number;
}

/** Stores notifications and takes each through claim and attempts, with the statements of API and worker; nothing is sent. */
export async function measureDeliveries(side: Side, count: number): Promise<DeliveryFigures> {
  const { owner, worker, prepared, partners, postgresPid } = side;
  const endpoints = new Map(
    (
      await owner.sql<{ partner: string; id: string }[]>`
        select partner_id as partner, endpoint_id as id from webhook_endpoints where environment = 'live'`
    ).map(({ partner, id }) => [partner, id]),
  );
  const times = {
    store: [] as number[],
    claim: [] as number[],
    claimEveryMonth: [] as number[],
    fast: [] as number[],
    attempt: [] as number[],
  };
  const timed = async <T>(of: number[], task: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const done = await task();
    of.push(performance.now() - startedAt);
    return done;
  };

  async function attempt({ notificationId, partnerId }: ClaimedNotification, nth: number): Promise<void> {
    const ref = { notificationId, generation: 1 };
    if (nth % FAILS !== 0) {
      await timed(times.fast, async () => {
        const opened = await openFirstAttempt(prepared.sql, ref, endpoints.get(partnerId) ?? '');
        if (opened === null) throw new Error(`${notificationId} was not opened`);
        const first = { notificationId, attemptNumber: 1 };
        if (await recordDelivered(prepared.sql, first, { ...DELIVERED, address })) return;
        // Another one to the same endpoint has failed meanwhile, so its health has changed.
        await recordAttempt(worker.db, first, { outcome: DELIVERED, address }, null);
      });
      return;
    }
    for (const outcome of [FAILED, DELIVERED]) {
      await timed(times.attempt, async () => {
        const opened = await openAttempt(worker.db, ref);
        if (opened.kind !== 'open') throw new Error(`${notificationId} is ${opened.kind}`);
        const { attemptNumber } = opened;
        const retryInMs = outcome.kind === 'failed' ? 5_000 : null;
        const result = { outcome, address };
        await recordAttempt(worker.db, { notificationId, attemptNumber }, result, null, retryInMs);
      });
    }
  }

  const cpuBefore = await postgresCpuMs(postgresPid);
  await inTurns(count, (nth) =>
    timed(times.store, () => storeChange(owner, partners[nth % partners.length] ?? '')),
  );
  let turn = FIRST_TURN;
  let everyMonthAt = Number.NEGATIVE_INFINITY;
  for (let done = 0; done < count;) {
    const now = performance.now();
    const everyMonth = now - everyMonthAt >= 1_000;
    if (everyMonth) everyMonthAt = now;
    const claim = await timed(everyMonth ? times.claimEveryMonth : times.claim, () =>
      claimDue(prepared.sql, { limit: 16, slots: 16, leaseMs: 10_000, turn, everyMonth }),
    );
    ({ turn } = claim);
    if (claim.claimed.length === 0) throw new Error('a claim came to nothing');
    await markStarted(worker.db, claim.claimed);
    await inTurns(claim.claimed.length, async (nth) => {
      const one = claim.claimed[nth];
      if (one !== undefined) await attempt(one, done + nth);
    });
    done += claim.claimed.length;
  }
  const cpuMs = ((await postgresCpuMs(postgresPid)) - cpuBefore) / count;
  const [storeMs, claimMs] = [median(times.store), median(times.claim)];
  return {
    storeMs,
    claimMs,
    claimEveryMonthMs: median(times.claimEveryMonth),
    fastAttemptMs: median(times.fast),
    attemptMs: median(times.attempt),
    cpuMs,
  };
}

async function inTurns(count: number, task: (nth: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < count) {
      next += 1;
      await task(next - 1);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
