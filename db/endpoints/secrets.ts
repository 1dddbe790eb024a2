import { randomBytes } from 'node:crypto';
import { ulid } from 'ulid';
import { encodeSecret } from '../../domain/webhook';
import { checkOverlap } from '../keys';
import { type DbOrTransaction, columns, rowsOf, runPrepared } from '../postgres/connect';
import { Refused } from '../refused';
import type { webhookSecrets } from '../schema';
import type { Sealed } from './key-ring';

/** Most secrets of an endpoint, and key pairs of a tenant, as each adds a signature to every delivery. */
const MOST_LIVE = 3;

export type SealedSecret = Readonly<typeof webhookSecrets.$inferSelect>;

type SealSecret = (place: { readonly endpointId: string; readonly secretId: string }) => Sealed;

/** A new webhook secret: `whsec_` and base64 of 32 random bytes. Shown once, then only sealed. */
export function generateWebhookSecret(): string {
  return encodeSecret(randomBytes(32));
}

const INSERT =
  'insert into webhook_secrets (secret_id, endpoint_id, key_id, ciphertext) values ($1, $2, $3, $4::bytea)';

export async function addSecret(tx: DbOrTransaction, endpointId: string, seal: SealSecret): Promise<string> {
  const secretId = `whs_${ulid()}`;
  const { keyId, ciphertext } = seal({ endpointId, secretId });
  await runPrepared(tx, INSERT, [secretId, endpointId, keyId, Buffer.from(ciphertext)]);
  return secretId;
}

const IS_LIVE = '(s.expires_at is null or s.expires_at > service_now())';
const NEWEST_FIRST = 'order by s.created_at desc, s.secret_id desc';
const LIVE = `
  select ${columns('s', 'secret_id, endpoint_id, key_id, ciphertext, created_at, expires_at')}
  from webhook_secrets s where s.endpoint_id = $1 and ${IS_LIVE} ${NEWEST_FIRST}`;

export const liveSecrets = (db: DbOrTransaction, endpointId: string) =>
  rowsOf<SealedSecret>(db, LIVE, [endpointId]);

const LOCK_ENDPOINT = 'select state from webhook_endpoints where endpoint_id = $1 for update';
const END = `
  update webhook_secrets set expires_at = least(expires_at, service_now() + make_interval(secs => $2::float8)) where endpoint_id = $1`;

/**
 * Adds a secret. The present ones sign beside it for the overlap, unless they end before.
 * @param wanted.overlapSeconds 0 (an emergency: the old ones end now) to 7 days
 * @throws Refused when the endpoint is missing or removed, or three secrets would be alive at the start
 * of the overlap
 */
export async function rotateSecret(
  tx: DbOrTransaction,
  endpointId: string,
  { overlapSeconds, seal }: { readonly overlapSeconds: number; readonly seal: SealSecret },
): Promise<{ secretId: string }> {
  checkOverlap(overlapSeconds);
  const [endpoint] = await runPrepared<{ state: string }>(tx, LOCK_ENDPOINT, [endpointId]);
  if (endpoint === undefined) throw new Refused('not_found', `Endpoint ${endpointId} does not exist.`);
  if (endpoint.state === 'removed') throw new Refused('conflict', `Endpoint ${endpointId} was removed.`);
  await runPrepared(tx, END, [endpointId, overlapSeconds]);
  refuseFourth((await liveSecrets(tx, endpointId)).length, `secrets of ${endpointId}`);
  return { secretId: await addSecret(tx, endpointId, seal) };
}

/** @throws Refused for a fourth live one, which would mean that rotations never end */
export function refuseFourth(live: number, what: string): void {
  if (live < MOST_LIVE) return;
  throw new Refused(
    'conflict',
    `${live} ${what} are alive; at most ${MOST_LIVE} may be. Wait for one to end, or use --overlap 0.`,
  );
}

export type SecretSummary = Omit<SealedSecret, 'endpointId' | 'ciphertext'> & {
  /** Whether deliveries are signed with it now, by the database's clock. */
  readonly live: boolean;
};

const LIST = `
  select ${columns('s', 'secret_id, key_id, created_at, expires_at')}, ${IS_LIVE} as live
  from webhook_secrets s where s.endpoint_id = $1 ${NEWEST_FIRST}`;

export const listSecrets = (db: DbOrTransaction, endpointId: string) =>
  rowsOf<SecretSummary>(db, LIST, [endpointId]);
