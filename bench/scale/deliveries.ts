import { openAttempt, recordAttempt } from '../../db/notifications/attempt';
import { claimDue, markStarted } from '../../db/notifications/claim';
import { queueName } from '../../db/notifications/notification';
import { DELIVERED, FAILED } from '../../testbed/values';
import { withCpu } from '../harness/cpu';
import { figure, median, type Figures } from '../harness/rounds';
import { storeChange } from '../harness/stored';
import type { Side } from './side';

/** A failed attempt is repeated at once. */
const LADDERS = { status: [0, 0], test: [0, 0] };

/** One in so many fails once, and is delivered then. */
const FAILS = 4;
const AT_ONCE = 8;
const address = '192.0.2.1';

/**
 * Stores notifications and takes each through claim and attempts, with the statements of API and worker; nothing is sent.
 * @returns medians of each kind of statement, and CPU of Postgres for each notification, from its storing to its count.
 */
export async function measureDeliveries(side: Side, count: number): Promise<Figures> {
  const { owner, prepared, partners, postgresPid } = side;
  const times: Record<string, number[]> = {};
  const timed = async <T>(
    what: 'store' | 'claim' | 'open' | 'record',
    task: () => Promise<T>,
  ): Promise<T> => {
    const startedAt = performance.now();
    const done = await task();
    (times[what] ??= []).push(performance.now() - startedAt);
    return done;
  };

  async function attempt(notificationId: string, nth: number): Promise<void> {
    for (const outcome of nth % FAILS === 0 ? [FAILED, DELIVERED] : [DELIVERED]) {
      const ref = { notificationId, generation: 1 };
      const opened = await timed('open', () => openAttempt(prepared.sql, ref, { ladders: LADDERS }));
      if (opened.kind !== 'open') throw new Error(`${notificationId} is ${opened.kind}`);
      const made = { notificationId, attemptNumber: opened.attemptNumber };
      await timed('record', () => recordAttempt(prepared.sql, made, { outcome, address }));
    }
  }

  async function deliver(): Promise<void> {
    await inTurns(count, (nth) =>
      timed('store', () => storeChange(owner, partners[nth % partners.length] ?? '')),
    );
    const queues = partners.map((partnerId) => queueName({ partnerId, environment: 'live' }));
    for (let done = 0; done < count;) {
      const claim = await timed('claim', () =>
        claimDue(prepared.sql, { limit: 16, slotsOf: () => 16, leaseMs: 10_000, graceMs: 0, queues }),
      );
      if (claim.claimed.length === 0) throw new Error('a claim returned no row');
      await markStarted(prepared.sql, claim.claimed);
      await inTurns(claim.claimed.length, async (nth) => {
        const one = claim.claimed[nth];
        if (one !== undefined) await attempt(one.notificationId, done + nth);
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
