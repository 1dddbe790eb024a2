import { SEARCH_ATTRIBUTES } from '../workflows/names';
import type { WorkerSession } from './worker-session';

const DEADLINE_MS = 1_500;
/** Keyword, in Temporal's own numbering of the types of search attributes. */
const KEYWORD = 2;

/**
 * Whether Temporal has what deliveries need. Temporal Cloud does not let clients list search attributes: there only the
 * namespace is asked for.
 * @throws naming the search attributes that are missing, or when Temporal or the namespace does not answer.
 */
export async function checkTemporal(
  { connection }: Pick<WorkerSession, 'connection'>,
  namespace: string,
): Promise<void> {
  await connection.withDeadline(Date.now() + DEADLINE_MS, () =>
    connection.workflowService.describeNamespace({ namespace }),
  );
  const found = await connection
    .withDeadline(Date.now() + DEADLINE_MS, () =>
      connection.operatorService.listSearchAttributes({ namespace }),
    )
    .catch(() => null);
  if (found === null) return;
  const missing = Object.values(SEARCH_ATTRIBUTES).filter(
    (name) => Number(found.customAttributes?.[name]) !== KEYWORD,
  );
  if (missing.length > 0) throw new Error(`Temporal lacks the search attributes ${missing.join(', ')}`);
}
