import { Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { RetentionStartAnswer } from '../call';
import { RETENTION_LIMIT, retentionScheduleId } from '../../runtime/temporal/retention-schedule';
import { overOwnConnection } from '../../runtime/temporal/connect';
import type { TemporalTarget } from '../../runtime/temporal/temporal-target';

/** A person waits: Temporal answers in milliseconds, or is not there. */
const DEADLINE_MS = 5_000;

/**
 * Starts the retention's workflow now.
 * @throws what is not an unreachable Temporal, for example a namespace that does not exist.
 */
export async function startRetention(
  target: TemporalTarget,
  taskQueue: string,
): Promise<RetentionStartAnswer> {
  return overOwnConnection<RetentionStartAnswer>(target, DEADLINE_MS, async (connection) => {
    const { workflow } = new Client({ connection, namespace: target.namespace });
    try {
      await connection.withDeadline(Date.now() + DEADLINE_MS, () =>
        workflow.start('applyRetention', {
          taskQueue,
          workflowId: `${retentionScheduleId(taskQueue)}/by-hand`,
          args: [],
          workflowExecutionTimeout: RETENTION_LIMIT,
        }),
      );
      return { kind: 'started' };
    } catch (error) {
      if (error instanceof WorkflowExecutionAlreadyStartedError) return { kind: 'under_way' };
      throw error;
    }
  });
}
