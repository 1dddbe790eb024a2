import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionLike } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { grpcStatus } from './temporal-absence';
import { CALL_TIMEOUT_MS, ensureSearchAttributes } from './search-attributes';

/** A namespace is known everywhere once the caches have been read again: seconds. */
const PATIENCE_MS = 60_000;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
const DAY_MS = 86_400_000;

/**
 * Registers the namespace, where it is missing, with our search attributes, and waits until both can be used. What is there stays
 * as it is; any number of processes may do so at once.
 * @param keepDays How long ended workflows are kept, 1 or more; for a namespace that is new.
 * @throws when Temporal cannot be reached or does not let us.
 */
export async function ensureNamespace(
  connection: ConnectionLike,
  { namespace, keepDays }: { readonly namespace: string; readonly keepDays: number },
): Promise<void> {
  const ask = async () =>
    connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
      connection.workflowService.countWorkflowExecutions({ namespace, query: '' }),
    );
  const missing = await ask().then(
    () => false,
    (error: unknown) => {
      if (grpcStatus(error) !== NOT_FOUND) throw error;
      return true;
    },
  );
  if (missing) {
    const workflowExecutionRetentionPeriod = msToTs(keepDays * DAY_MS);
    await connection
      .withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
        connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod }),
      )
      .catch((error: unknown) => {
        if (grpcStatus(error) !== ALREADY_EXISTS) throw error;
      });
    const deadline = Date.now() + PATIENCE_MS;
    const known = async () =>
      ask().then(
        () => true,
        (error: unknown) => {
          if (Date.now() > deadline) throw error;
          return false;
        },
      );
    while (!(await known())) await sleep(200);
  }
  await ensureSearchAttributes(connection, namespace);
}
