import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionLike } from '@temporalio/client';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import { grpcStatus } from './temporal-absence';
import { connectTemporal } from './connect';
import { externalTemporal } from './temporal-target';
import type { Config } from '../config/config';

/** A server that caches its search attributes reads them again after a minute at most. */
const PATIENCE_MS = 90_000;
export const CALL_TIMEOUT_MS = 5_000;
const INVALID_ARGUMENT = 3;
/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;

/**
 * Which of our search attributes the namespace lacks. Asked by queries, because Temporal Cloud refuses the operator API.
 * @throws when Temporal cannot be asked.
 */
export async function missingSearchAttributes(
  connection: ConnectionLike,
  namespace: string,
): Promise<string[]> {
  const missing: string[] = [];
  for (const name of SEARCH_ATTRIBUTES) {
    try {
      await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
        connection.workflowService.countWorkflowExecutions({ namespace, query: `${name} = 'any'` }),
      );
    } catch (error) {
      if (grpcStatus(error) !== INVALID_ARGUMENT) throw error;
      missing.push(name);
    }
  }
  return missing;
}

/**
 * Registers those that the namespace lacks, and waits until they can be used. Any number of processes may do so at once.
 * @throws naming them, when this Temporal does not let us.
 */
export async function ensureSearchAttributes(connection: ConnectionLike, namespace: string): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  let missing = await missingSearchAttributes(connection, namespace);
  let refusal = '';
  while (missing.length > 0) {
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    try {
      await connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, () =>
        connection.operatorService.addSearchAttributes({ namespace, searchAttributes }),
      );
    } catch (error) {
      // Another process may be doing the same: what counts is whether they come.
      refusal = (error as Error).message;
    }
    missing = await missingSearchAttributes(connection, namespace);
    const refused = refusal !== '' && !/exist/i.test(refusal);
    if (missing.length > 0 && (refused || Date.now() > deadline))
      throw new Error(
        `Namespace ${namespace} lacks the search attributes ${missing.join(', ')} (type Keyword), and registering them ` +
          `failed (${refusal || 'they do not appear'}). Register them with the Temporal CLI or, in Temporal Cloud, with tcld.`,
      );
    if (missing.length > 0) await sleep(250);
  }
}

/**
 * The Temporal that the settings name, and what makes it ready for a worker.
 * @returns undefined when they name none. `prepare` throws when it is not there or lacks what it does not let us add.
 */
export function prepareExternalTemporal(
  config: Config,
): { readonly address: string; prepare(): Promise<void> } | undefined {
  const target = externalTemporal(config);
  if (target === undefined) return undefined;
  return {
    address: target.connection.address,
    prepare: async () => {
      const temporal = connectTemporal(config);
      try {
        await temporal.check(10_000);
        await ensureSearchAttributes(temporal.client.connection, temporal.namespace);
      } finally {
        await temporal.close();
      }
    },
  };
}
