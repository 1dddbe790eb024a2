import { sql, type SQL } from 'drizzle-orm';
import type { DbOrTransaction } from '../connect';
import type { KeyEnvironment } from '../keys';
import { findEndpoint } from './webhook-endpoints';

/** Why a notification is held, and why a test without an endpoint fails. */
export const NOT_REGISTERED = 'webhook_not_registered';

type Beginning =
  | { readonly state: 'pending' }
  | { readonly state: 'held'; readonly endReason: string; readonly heldAt: SQL };

/**
 * How a status notification begins: `pending`, or `held` while its partner has no active endpoint for it. To be spread into
 * the insert, in its transaction. Should an endpoint come or go meanwhile, the keeper puts it right. Not for tests, which
 * are never held.
 */
export async function stateAtBirth(
  tx: DbOrTransaction,
  { partnerId, environment }: { partnerId: string; environment: KeyEnvironment },
): Promise<Beginning> {
  const endpoint = await findEndpoint(tx, partnerId, environment);
  if (endpoint?.state === 'active') return { state: 'pending' };
  return { state: 'held', endReason: NOT_REGISTERED, heldAt: sql`service_now()` };
}
