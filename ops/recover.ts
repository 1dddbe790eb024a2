import { setTimeout as sleep } from 'node:timers/promises';
import { TEST_EVENT_TYPE } from '../contracts/webhook-event';
import type { Db } from '../db/postgres/connect';
import { cursorOf, endRecovery, recoverOne, type Recovery } from '../db/notifications/recoveries';
import { EndpointMissing } from '../db/notifications/resend';
import { listRecoverable } from '../db/notifications/undelivered';

/** People read along; a line a second is enough. */
const PROGRESS_EVERY_MS = 1_000;

export interface RecoveryRun {
  readonly db: Db;
  readonly actor: string;
  /** Aborted: finish the one under way, and write down where it stands. */
  readonly interrupted: AbortSignal;
  readonly onProgress: (recovery: Pick<Recovery, 'found' | 'sent' | 'skipped'>) => void;
}

/** How a run of a recovery ended; `stopped` says why it did before its end. */
export interface RecoveryRunEnd {
  readonly recovery: Recovery;
  readonly stopped: 'interrupted' | EndpointMissing | null;
}

/**
 * Works off what a recovery still has to send, one by one, at its rate. What it has dealt with is written down with each,
 * so it may die at any moment.
 * @throws TakenOver when another process has resumed it.
 */
export async function runRecovery(recovery: Recovery, run: RecoveryRun): Promise<RecoveryRunEnd> {
  const { db, actor, interrupted, onProgress } = run;
  const { recoveryId, runner, partnerId, environment, found, perSecond } = recovery;
  const span = { since: recovery.since.toISOString(), until: recovery.until.toISOString() };
  const items = await listRecoverable(
    db,
    { partnerId, environment, ...span },
    { testEventType: TEST_EVENT_TYPE, after: cursorOf(recovery) },
  );
  let { sent, skipped } = recovery;
  let stopped: RecoveryRunEnd['stopped'] = null;
  const startedAt = performance.now();
  let toldAt = startedAt;
  for (const [at, item] of items.entries()) {
    await pauseUntil(startedAt + (at / perSecond) * 1_000, interrupted);
    if (interrupted.aborted) {
      stopped = 'interrupted';
      break;
    }
    const who = { recoveryId, runner, actor };
    const outcome = await recoverOne(db, who, item, TEST_EVENT_TYPE).catch((error: unknown) => {
      if (error instanceof EndpointMissing) return error;
      throw error;
    });
    if (outcome instanceof EndpointMissing) {
      stopped = outcome;
      break;
    }
    if (outcome === 'sent') sent += 1;
    else skipped += 1;
    if (performance.now() - toldAt < PROGRESS_EVERY_MS) continue;
    toldAt = performance.now();
    onProgress({ found, sent, skipped });
  }
  const state = stopped === null ? 'done' : 'interrupted';
  return { recovery: await endRecovery(db, { recoveryId, runner, actor }, state), stopped };
}

async function pauseUntil(atMs: number, interrupted: AbortSignal): Promise<void> {
  const ms = atMs - performance.now();
  if (ms > 0) await sleep(ms, undefined, { signal: interrupted }).catch(() => undefined);
}
