import { setTimeout as sleep } from 'node:timers/promises';
import type { ConnectionLike } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import type { Config } from '../config/config';
import { grpcStatus, withConnection } from './connect';
import { externalTemporal } from './temporal-target';

const CALL_TIMEOUT_MS = 5_000;
/** Hosts of Temporal know a new namespace or search attribute after a minute at most. */
const NAMESPACE_TIMEOUT_MS = 60_000;
const ATTRIBUTES_TIMEOUT_MS = 90_000;
/** In gRPC's numbering. */
const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;
const ALREADY_EXISTS = 6;
/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;
const DAY_MS = 86_400_000;

/**
 * Registers a missing namespace with our search attributes, and waits until both can be used. What exists
 * stays as it is. Any number of processes may do this at once.
 * @param keepDays days that a new namespace keeps ended workflows, 1 or more
 * @throws when Temporal cannot be reached or refuses
 */
export async function ensureNamespace(
  connection: ConnectionLike,
  { namespace, keepDays }: { readonly namespace: string; readonly keepDays: number },
): Promise<void> {
  if (!(await exists(connection, namespace))) {
    const workflowExecutionRetentionPeriod = msToTs(keepDays * DAY_MS);
    await ask(connection, () =>
      connection.workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod }),
    ).catch((error: unknown) => {
      if (grpcStatus(error) !== ALREADY_EXISTS) throw error;
    });
    const deadline = Date.now() + NAMESPACE_TIMEOUT_MS;
    while (!(await exists(connection, namespace))) {
      if (Date.now() > deadline) throw new Error(`namespace ${namespace} was registered and does not appear`);
      await sleep(200);
    }
  }
  await ensureSearchAttributes(connection, namespace);
}

const exists = (connection: ConnectionLike, namespace: string) =>
  canCount(connection, { namespace, query: '' }, NOT_FOUND);

/** Whether Temporal counts workflows by a query; false when it refuses that with this status of gRPC. */
async function canCount(
  connection: ConnectionLike,
  wanted: { readonly namespace: string; readonly query: string },
  refusal: number,
): Promise<boolean> {
  try {
    await ask(connection, () => connection.workflowService.countWorkflowExecutions(wanted));
    return true;
  } catch (error) {
    if (grpcStatus(error) !== refusal) throw error;
    return false;
  }
}

/**
 * The search attributes that the namespace lacks, by queries, as Temporal Cloud refuses the operator API. It
 * also allows 30 such queries a second to all workers together, so one asks for all of them.
 */
export async function missingSearchAttributes(connection: ConnectionLike, namespace: string) {
  if (await known(connection, namespace, SEARCH_ATTRIBUTES)) return [];
  const missing: string[] = [];
  for (const name of SEARCH_ATTRIBUTES) if (!(await known(connection, namespace, [name]))) missing.push(name);
  return missing;
}

function known(connection: ConnectionLike, namespace: string, names: readonly string[]) {
  const query = names.map((name) => `${name} = 'any'`).join(' AND ');
  return canCount(connection, { namespace, query }, INVALID_ARGUMENT);
}

/** What is missing and how to add it; null: nothing. */
export async function lackOfSearchAttributes(connection: ConnectionLike, namespace: string) {
  const missing = await missingSearchAttributes(connection, namespace);
  return missing.length === 0 ? null : `Temporal: ${adviceToAdd(namespace, missing)}`;
}

/** Temporal's frontend answers much by itself. @throws unless the part that keeps histories answers too */
export async function askForHistories(connection: ConnectionLike, namespace: string): Promise<void> {
  const execution = { workflowId: 'no-such-workflow' };
  const asked = connection.workflowService.describeWorkflowExecution({ namespace, execution });
  await asked.catch((error: unknown) => {
    if (grpcStatus(error) !== NOT_FOUND)
      throw new Error(`Temporal's histories: ${(error as Error).message}`, { cause: error });
  });
}

const adviceToAdd = (namespace: string, missing: readonly string[]) =>
  `namespace ${namespace} lacks the search attributes ${missing.join(', ')} (type Keyword): run prepare-temporal, or for Temporal Cloud ` +
  `tcld namespace search-attributes add --namespace ${namespace}${missing.map((name) => ` --search-attribute ${name}=Keyword`).join('')}`;

/**
 * Registers the missing ones and waits until they work; any number may do so at once.
 * @throws naming them when this is refused
 */
export async function ensureSearchAttributes(connection: ConnectionLike, namespace: string): Promise<void> {
  const deadline = Date.now() + ATTRIBUTES_TIMEOUT_MS;
  let missing = await missingSearchAttributes(connection, namespace);
  let refusal = '';
  while (missing.length > 0) {
    const searchAttributes = Object.fromEntries(missing.map((name) => [name, KEYWORD]));
    try {
      await ask(connection, () =>
        connection.operatorService.addSearchAttributes({ namespace, searchAttributes }),
      );
    } catch (error) {
      // Another process may be registering them too, so this only waits for them to appear.
      refusal = (error as Error).message;
    }
    missing = await missingSearchAttributes(connection, namespace);
    const refused = refusal !== '' && !/exist/i.test(refusal);
    if (missing.length > 0 && (refused || Date.now() > deadline))
      throw new Error(
        `registering search attributes failed (${refusal || 'they do not appear'}): ${adviceToAdd(namespace, missing)}`,
      );
    if (missing.length > 0) await sleep(250);
  }
}

const ask = <T>(connection: ConnectionLike, call: () => Promise<T>): Promise<T> =>
  connection.withDeadline(Date.now() + CALL_TIMEOUT_MS, call);

/** The external Temporal, or undefined. `prepare` throws when it is away or lacks what we may not add. */
export function prepareExternalTemporal(config: Config) {
  const target = externalTemporal(config);
  if (target === undefined) return undefined;
  return {
    address: target.connection.address,
    prepare: () =>
      withConnection(target, 10_000, (connection) => ensureSearchAttributes(connection, target.namespace)),
  };
}
