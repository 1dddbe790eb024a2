import type { Sql } from '../postgres/connect';
import type { OpenedAttempt } from './open-attempt';
import { runPrepared } from '../postgres/prepared';
import { updateText } from './update';

/**
 * `openAttempt` for the common case, in one statement: the first attempt ever of a live notification, to the expected
 * endpoint, whose unit of the quota, if it has one, is of this month. Locking the row with these conditions checks them
 * again after a wait.
 */
const OPEN = `
  with n as (
    select notification_id, event_id, event_type, body, partner_id, environment, application_id, sequence, merchant_reference,
      generation, request_id, trace_parent, created_at
    from notifications
    where notification_id = $1 and generation = $2 and attempts = 0 and state in ('pending', 'started')
      and (reserved_month is null or reserved_month = service_month())
    for update),
  e as (
    select endpoint_id, url from n join webhook_endpoints using (partner_id, environment)
    where state = 'active' and endpoint_id = $3),
  attempt as (
    insert into delivery_attempts (notification_id, attempt_number, generation, endpoint_id)
    select notification_id, 1, generation, endpoint_id from n, e),
  noted as (
    ${updateText('attempt', {
      attempts: '1',
      reserved_month: 't.reserved_month',
      taken_at: 'coalesce(t.taken_at, service_now())',
    })}
    from n, e where t.notification_id = $1)
  select event_id as "eventId", event_type as "eventType", body, partner_id as "partnerId", environment, url,
    application_id as "applicationId", sequence, merchant_reference as "merchantReference", request_id as "requestId", trace_parent as "traceParent", (extract(epoch from service_now() - created_at) * 1000)::float8 as "ageMs",
    (select json_agg(json_build_object('secretId', secret_id, 'keyId', key_id,
        'ciphertext', encode(ciphertext, 'base64')) order by created_at desc, secret_id desc)
      from webhook_secrets s
      where s.endpoint_id = e.endpoint_id and (expires_at is null or expires_at > service_now()))::text as secrets,
    (select json_agg(json_build_object('keyPairId', key_pair_id, 'publicKey', public_key, 'keyId', key_id,
        'ciphertext', encode(ciphertext, 'base64')) order by created_at desc, key_pair_id desc)
      from webhook_key_pairs k
      where k.partner_id = n.partner_id and k.environment = n.environment
        and (expires_at is null or expires_at > service_now()))::text as "keyPairs"
  from n, e`;

type Opened = Extract<OpenedAttempt, { kind: 'open' }>;
type Row = Opened['notification'] & {
  readonly url: string;
  readonly secrets: string | null;
  readonly keyPairs: string | null;
};

/**
 * Writes the row of a first attempt before it is sent.
 * @param endpointId the endpoint that it must still be for.
 * @returns null, with nothing changed, in every case that wants `openAttempt` with its locks and looks.
 */
export async function openFirstAttempt(
  sql: Sql,
  { notificationId, generation }: { readonly notificationId: string; readonly generation: number },
  endpointId: string,
): Promise<Opened | null> {
  const [row] = await runPrepared<Row>(sql, OPEN, [notificationId, generation, endpointId]);
  if (row === undefined) return null;
  const { url, secrets, keyPairs, ...notification } = row;
  return {
    kind: 'open',
    attemptNumber: 1,
    notification,
    endpoint: { endpointId, url },
    secrets: sealedIn<{ secretId: string; keyId: string }>(secrets).map((one) => ({ ...one, endpointId })),
    keyPairs: sealedIn<{ keyPairId: string; publicKey: string; keyId: string }>(keyPairs),
  };
}

/** The rows of a `json_agg`, each with its ciphertext as bytes. */
function sealedIn<Row>(json: string | null) {
  const rows = JSON.parse(json ?? '[]') as (Row & { readonly ciphertext: string })[];
  return rows.map((one) => ({ ...one, ciphertext: Buffer.from(one.ciphertext, 'base64') }));
}
