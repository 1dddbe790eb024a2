import { setTimeout as sleep } from 'node:timers/promises';
import { Connection, isGrpcServiceError } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { ensureSearchAttributes } from '../../runtime/search-attributes';

const CALL_TIMEOUT_MS = 5_000;
/** A namespace is known everywhere once the caches have been read again: seconds. */
const PATIENCE_MS = 60_000;
/** gRPC status. */
const ALREADY_EXISTS = 6;
const RETENTION_MS = 86_400_000;

/** Registers the namespace, with our search attributes, and waits until both can be used. */
export async function ensureNamespace(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: CALL_TIMEOUT_MS });
  const call = async <T>(what: () => Promise<T>) =>
    connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, what);
  try {
    const workflowExecutionRetentionPeriod = msToTs(RETENTION_MS);
    await call(() =>
      connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod }),
    ).catch((error: unknown) => {
      const code: number | undefined = isGrpcServiceError(error) ? error.code : undefined;
      if (code !== ALREADY_EXISTS) throw error;
    });
    const deadline = Date.now() + PATIENCE_MS;
    for (;;) {
      const known = await call(() =>
        connection.workflowService.countWorkflowExecutions({ namespace, query: '' }),
      ).then(
        () => true,
        (error: unknown) => {
          if (Date.now() > deadline) throw error;
          return false;
        },
      );
      if (known) break;
      await sleep(200);
    }
    await ensureSearchAttributes(connection, namespace);
  } finally {
    await connection.close();
  }
}
