import { claimDue, FIRST_TURN, markStarted, type ClaimedNotification } from '../../db/notifications/claim';
import { openAttempt } from '../../db/notifications/open-attempt';
import { openFirstAttempt } from '../../db/notifications/open-first-attempt';
import { recordAttempt } from '../../db/notifications/record-attempt';
import { recordDelivered } from '../../db/notifications/record-delivered';
import type { DeliveryOutcome } from '../../domain/delivery-outcome';
import { withCpu } from '../harness/cpu';
import { figure, median, type Figures } from '../harness/rounds';
import { storeChange } from '../harness/stored';
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

/**
 * Stores notifications and takes each through claim and attempts, with the statements of API and worker; nothing is sent.
 * @returns medians of each kind of statement, and CPU of Postgres for each notification, from its storing to its count.
 */
export async function measureDeliveries(side: Side, count: number): Promise<Figures> {
  const { owner, worker, prepared, partners, postgresPid } = side;
  const rows = await owner.sql<{ partner: string; id: string }[]>`
    select partner_id as partner, endpoint_id as id from webhook_endpoints where environment = 'live'`;
  const endpoints = new Map(rows.map(({ partner, id }) => [partner, id]));
  // A dispatcher makes both kinds of claims: one in a second looks at every month. An attempt is opened and recorded, in one
  // statement each on the fast path.
  const times: Record<'store' | 'claim' | 'claim_every_month' | 'fast_attempt' | 'attempt', number[]> = {
    store: [],
    claim: [],
    claim_every_month: [],
    fast_attempt: [],
    attempt: [],
  };
  const timed = async <T>(what: keyof typeof times, task: () => Promise<T>): Promise<T> => {
    const startedAt = performance.now();
    const done = await task();
    times[what].push(performance.now() - startedAt);
    return done;
  };

  async function attempt({ notificationId, partnerId }: ClaimedNotification, nth: number): Promise<void> {
    const ref = { notificationId, generation: 1 };
    if (nth % FAILS !== 0) {
      await timed('fast_attempt', async () => {
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
      await timed('attempt', async () => {
        const opened = await openAttempt(worker.db, ref);
        if (opened.kind !== 'open') throw new Error(`${notificationId} is ${opened.kind}`);
        const { attemptNumber } = opened;
        const retryInMs = outcome.kind === 'failed' ? 5_000 : null;
        const result = { outcome, address };
        await recordAttempt(worker.db, { notificationId, attemptNumber }, result, null, retryInMs);
      });
    }
  }

  async function deliver(): Promise<void> {
    await inTurns(count, (nth) =>
      timed('store', () => storeChange(owner, partners[nth % partners.length] ?? '')),
    );
    let turn = FIRST_TURN;
    let everyMonthAt = Number.NEGATIVE_INFINITY;
    for (let done = 0; done < count;) {
      const now = performance.now();
      const everyMonth = now - everyMonthAt >= 1_000;
      if (everyMonth) everyMonthAt = now;
      const claim = await timed(everyMonth ? 'claim_every_month' : 'claim', () =>
        claimDue(prepared.sql, { limit: 16, slots: 16, leaseMs: 10_000, turn, everyMonth }),
      );
      ({ turn } = claim);
      if (claim.claimed.length === 0) throw new Error('a claim returned no row');
      await markStarted(worker.db, claim.claimed);
      await inTurns(claim.claimed.length, async (nth) => {
        const one = claim.claimed[nth];
        if (one !== undefined) await attempt(one, done + nth);
      });
      done += claim.claimed.length;
    }
  }

  const { cpu } = await withCpu({ processes: {}, postgres: { postgres: postgresPid } }, count, deliver);
  const statements = Object.entries(times).map(([what, all]) => [`${what}_ms`, median(all)] as const);
  return { notification_cpu_ms: figure(cpu, 'postgres_cpu_ms'), ...Object.fromEntries(statements) };
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
