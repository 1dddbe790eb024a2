import { pauseUntil } from '../../timing/pause-until';
import type { Db } from '../postgres/connect';
import { cursorOf, recoverOne, type Recovery } from './recoveries';
import { EndpointMissing } from './resend';
import { listRecoverable } from './undelivered';

/** People read along; a line a second is enough. */
const PROGRESS_EVERY_MS = 1_000;

interface RecoveryRun {
  readonly db: Db;
  readonly actor: string;
  readonly interrupted: AbortSignal;
  readonly onProgress: (recovery: Pick<Recovery, 'found' | 'sent' | 'skipped'>) => void;
}

/**
 * Works off what a recovery still has to send, one by one, at its rate. What it has dealt with is written down with each,
 * so it may die at any moment. The caller writes down how it ended.
 * @returns why it stopped before its end; null at its end.
 * @throws TakenOver when another process has resumed it.
 */
export async function runRecovery(
  recovery: Recovery,
  run: RecoveryRun,
): Promise<'interrupted' | EndpointMissing | null> {
  const { db, actor, interrupted, onProgress } = run;
  const { recoveryId, runner, partnerId, environment, found, perSecond } = recovery;
  const span = { since: recovery.since.toISOString(), until: recovery.until.toISOString() };
  const items = await listRecoverable(db, { partnerId, environment, ...span }, cursorOf(recovery));
  let { sent, skipped } = recovery;
  const startedAt = performance.now();
  let toldAt = startedAt;
  for (const [at, item] of items.entries()) {
    await pauseUntil(startedAt + (at / perSecond) * 1_000, interrupted);
    if (interrupted.aborted) return 'interrupted';
    const who = { recoveryId, runner, actor };
    const outcome = await recoverOne(db, who, item).catch((error: unknown) => {
      if (error instanceof EndpointMissing) return error;
      throw error;
    });
    if (outcome instanceof EndpointMissing) return outcome;
    if (outcome === 'sent') sent += 1;
    else skipped += 1;
    if (performance.now() - toldAt < PROGRESS_EVERY_MS) continue;
    toldAt = performance.now();
    onProgress({ found, sent, skipped });
  }
  return null;
}
