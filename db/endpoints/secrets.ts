import type { DbOrTransaction } from '../postgres/connect';
import { columns, rowsOf, runPrepared } from '../postgres/prepared';
import { Refused } from '../refused';
import { addSecret, liveSecrets, lockEndpoint, type SealedSecret, type SealSecret } from './endpoints';
import { checkOverlap, MOST_LIVE } from '../overlap';

const END = `
  update webhook_secrets set expires_at = least(expires_at, service_now() + make_interval(secs => $2::float8)) where endpoint_id = $1`;

/**
 * Adds a secret and lets the present ones sign on for the overlap; an earlier end of their own stands.
 * @param wanted.overlapSeconds 0 (an emergency: the old ones end now) to 7 days.
 * @throws Refused when the endpoint is missing or removed, or three secrets would outlive the overlap's start.
 */
export async function rotateSecret(
  tx: DbOrTransaction,
  endpointId: string,
  wanted: { overlapSeconds: number; seal: SealSecret },
): Promise<{ secretId: string; live: number }> {
  const { overlapSeconds, seal } = wanted;
  checkOverlap(overlapSeconds);
  const { state } = await lockEndpoint(tx, endpointId);
  if (state === 'removed') throw new Refused('conflict', `Endpoint ${endpointId} was removed.`);
  await runPrepared(tx, END, [endpointId, overlapSeconds]);
  const before = await liveSecrets(tx, endpointId);
  if (before.length >= MOST_LIVE) {
    throw new Refused(
      'conflict',
      `${before.length} secrets of ${endpointId} are alive; at most ${MOST_LIVE} may be. Wait for one to end, or use --overlap 0.`,
    );
  }
  const secretId = await addSecret(tx, endpointId, seal);
  return { secretId, live: before.length + 1 };
}

/** A secret as people see it: never the secret. */
export type SecretSummary = Omit<SealedSecret, 'endpointId' | 'ciphertext'> & {
  /** Whether deliveries are signed with it now, by the database's clock. */
  readonly live: boolean;
};

const LIST = `
  select ${columns('s', ['secret_id', 'key_id', 'created_at', 'expires_at'])},
    s.expires_at is null or s.expires_at > service_now() as live
  from webhook_secrets s where s.endpoint_id = $1 order by s.created_at desc, s.secret_id desc`;

/** All secrets of an endpoint, those that have ended too, newest first. */
export async function listSecrets(db: DbOrTransaction, endpointId: string): Promise<SecretSummary[]> {
  return rowsOf<SecretSummary>(db, LIST, [endpointId]);
}
