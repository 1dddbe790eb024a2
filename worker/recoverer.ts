import {
  claimRecovery,
  giveBackRecovery,
  endRecovery,
  TakenOver,
  runRecovery,
  type Recovery,
} from '../db/notifications/recovery';
import { inRound, startLoop, type Loop } from '../timing/timing';
import type { WorkerLoopOptions } from './keeper';

/** Recoveries that one worker carries out at a time. Each sends at most ten notifications a second. */
const MOST_AT_A_TIME = 8;

/**
 * Carries out partners' recoveries. A lease in the row keeps workers apart; after it, another worker
 * continues.
 */
export function startWorkerRecoverer({ db, logger, everyMs }: Omit<WorkerLoopOptions, 'metrics'>): Loop {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();

  async function round(stopped: () => boolean, wake: () => void): Promise<void> {
    while (!stopped() && running.size < MOST_AT_A_TIME) {
      const recovery = await inRound(claimRecovery(db));
      if (recovery === null) return;
      const task = carryOut(recovery)
        .catch((error: unknown) =>
          logger.warn({ err: error }, 'a recovery was interrupted; it is taken up again'),
        )
        .finally(() => {
          running.delete(task);
          wake();
        });
      running.add(task);
    }
  }

  async function carryOut(recovery: Recovery): Promise<void> {
    const { recoveryId, runner, partnerId, environment, keyId } = recovery;
    const actor = keyId ?? 'worker';
    try {
      const interrupted = stopping.signal;
      const stop = await runRecovery(recovery, { db, actor, interrupted, onProgress: () => undefined });
      if (stop === 'interrupted') return await giveBackRecovery(db, recovery);
      const state = stop === null ? 'done' : 'interrupted';
      const { found, sent, skipped } = await endRecovery(db, { recoveryId, runner, actor }, state);
      const about = { recoveryId, partnerId, environment, found, sent, skipped };
      if (stop === null) logger.info(about, 'a recovery is done');
      else logger.warn({ ...about, err: stop }, 'a recovery was stopped');
    } catch (error) {
      if (!(error instanceof TakenOver)) throw error;
      logger.info({ recoveryId, partnerId, environment }, 'a recovery was stopped, or taken over');
    }
  }

  const loop = startLoop({
    round,
    everyMs,
    onError: (error) => logger.warn({ err: error }, 'recoveries could not be claimed'),
  });
  return {
    wake: () => loop.wake(),
    async stop() {
      stopping.abort();
      await loop.stop();
      await Promise.all(running);
    },
  };
}
