import type { WorkerTuning } from '../../worker/options';

/**
 * What tests vary of a worker besides its settings, by names in its environment that the service itself does not know: so they can be
 * passed to a worker in this process and to one of its own alike.
 */
export function workerTuning(environment: Readonly<Record<string, string | undefined>>): WorkerTuning {
  const {
    TASK_QUEUE: taskQueue,
    WORKFLOW_BUNDLE: codePath,
    DISPATCH_SWEEP_MS: sweepMs,
    TEST_LADDER_SECONDS: testLadder,
    RECONCILE_AFTER_MS: reconcileAfterMs,
    WORKFLOW_TASKS_AT_ONCE: mostWorkflowTasks,
    FAST_SLOTS: fastSlots,
    FIGURES_EVERY_MS: figuresEveryMs,
    TRY_EVERY_MS: tryEveryMs,
    SENDS_AT_ONCE: mostSends,
    BUSY_ROUNDS: mostBusyRounds,
  } = environment;
  return {
    ...(taskQueue !== undefined && { taskQueue }),
    ...(codePath !== undefined && { workflows: { bundle: { codePath } } }),
    ...(sweepMs !== undefined && { sweepMs: Number(sweepMs) }),
    ...(testLadder !== undefined && {
      testLadderMs: testLadder.split(',').map((seconds) => Number(seconds) * 1_000),
    }),
    ...(reconcileAfterMs !== undefined && { reconcileAfterMs: Number(reconcileAfterMs) }),
    ...(tryEveryMs !== undefined && { tryEveryMs: Number(tryEveryMs) }),
    ...(mostWorkflowTasks !== undefined && { mostWorkflowTasks: Number(mostWorkflowTasks) }),
    ...(fastSlots !== undefined && { fastSlots: Number(fastSlots) }),
    ...(figuresEveryMs !== undefined && { figuresEveryMs: Number(figuresEveryMs) }),
    ...(mostSends !== undefined && { mostSends: Number(mostSends) }),
    ...(mostBusyRounds !== undefined && { mostBusyRounds: Number(mostBusyRounds) }),
  };
}
