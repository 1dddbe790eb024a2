import { claimDue, sweepQueues, type Claim, type ClaimOptions } from '../../db/notifications/claim';
import type { Reader } from '../../db/postgres/connect';

/** Claims of every queue with something due, as one worker does, the queues in their order. */
export async function claimAll(
  reader: Reader,
  { slots = 16, ...options }: Partial<ClaimOptions> & { readonly slots?: number } = {},
) {
  const limit = options.limit ?? 64;
  const { due } = await sweepQueues(reader, '');
  const queues = due.map(({ queue }) => queue).toSorted();
  const defaults = { slotsOf: () => slots, leaseMs: 60_000, graceMs: 0, queues: queues.slice(0, limit) };
  const claim: Claim = await claimDue(reader, { ...defaults, ...options, limit });
  const contended = claim.remaining.some(({ why }) => why === 'contended');
  return { ...claim, contended, waiting: claim.remaining.length > 0 };
}
