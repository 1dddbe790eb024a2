import { TEST_EVENT_TYPE } from '../../contracts/webhook-event';
import { claimRecovery, giveBackRecovery } from '../../db/notifications/claim-recovery';
import { endRecovery, TakenOver } from '../../db/notifications/recoveries';
import { runRecovery } from '../../db/notifications/run-recovery';
import { inRound } from '../../db/postgres/deadline';
import { startRecoverer } from '../../dispatcher/recoverer';
import type { Loop } from '../../timing/loop';
import type { WorkerLoopOptions } from './worker-keeper';

/** What a worker process does for the recoveries that partners ask for, with its lines in the log. */
export function startWorkerRecoverer(options: Omit<WorkerLoopOptions, 'registry'>): Loop {
  const { db, logger, everyMs } = options;
  return startRecoverer({
    claim: () => inRound(claimRecovery(db), 'recoveries'),
    async run(recovery, interrupted) {
      const { recoveryId, runner, partnerId, environment, keyId } = recovery;
      const actor = keyId ?? 'worker';
      try {
        const stop = await runRecovery(recovery, {
          db,
          actor,
          testEventType: TEST_EVENT_TYPE,
          interrupted,
          onProgress: () => undefined,
        });
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
    },
    onError: (error, what) => logger.warn({ err: error }, what),
    everyMs,
  });
}
