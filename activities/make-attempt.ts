import { TEST_APPLICATION_ID, TEST_REFERENCE, TEST_SEQUENCE } from '../contracts/test-event';
import { TEST_EVENT_TYPE, type ApplicationEvent } from '../contracts/webhook-event';
import { ULID_PATTERN } from '../domain/ulid-pattern';
import { signatureHeaders } from '../domain/webhook-signature';
import { KeyRingError } from '../db/endpoints/key-ring';
import { forgetAttempt, type OpenedAttempt } from '../db/notifications/open-attempt';
import { endNotification, keepAnswer, type NotificationEnd } from '../db/notifications/record-attempt';
import type { ActivityDeps } from './deps';
import type { NotificationRef, SendResult } from './send-order';

type Opened = Extract<OpenedAttempt, { kind: 'open' }>;

/** Ends a notification without an attempt. */
export function createRefuse({ db, warn, onEnd }: Pick<ActivityDeps, 'db' | 'warn' | 'onEnd'>) {
  return async function refuse(ref: NotificationRef, refusal: NotificationEnd): Promise<SendResult> {
    warn({ ...ref, ...refusal }, 'a notification is not sent');
    const eventType = await endNotification(db, ref, refusal);
    if (eventType !== null) onEnd({ ...refusal, eventType });
    return { kind: 'over', ...refusal };
  };
}

export function createMakeAttempt(deps: ActivityDeps) {
  const { db, send, now, warn, monotonicMs } = deps;
  const refuse = createRefuse(deps);

  return async function makeAttempt(ref: NotificationRef, opened: Opened): Promise<SendResult> {
    if (!isEvent(opened.notification)) return refuse(ref, { state: 'failed', reason: 'poison' });
    const { notification, attemptNumber, endpoint } = opened;
    const openedMs = monotonicMs();
    const headers = await signed(ref, opened);
    const { outcome, answer, address, detail } = await send({
      url: endpoint.url,
      headers,
      body: notification.body,
    });
    const { partnerId, environment, eventType, requestId, traceParent, ageMs } = notification;
    const about = { ...ref, attemptNumber, requestId, partnerId, environment, eventType };
    const { endpointId } = endpoint;
    deps.onAttempt(outcome, { ...about, traceParent, endpointId, ageMs: ageMs + monotonicMs() - openedMs });
    if (outcome.kind === 'failed' && outcome.failure === 'blocked_address') {
      warn(
        { ...about, endpointId, detail },
        'an endpoint leads to where webhooks may not go; nothing was sent: ask the partner',
      );
    }
    const kept = answer ?? detail;
    if (kept !== null && kept !== '') {
      // What the partner answered is good to know, and not worth a second event when the database is away.
      await keepAnswer(db, { notificationId: ref.notificationId, attemptNumber }, kept).catch(
        (error: unknown) => warn({ ...about, err: error }, 'the answer of an endpoint was not kept'),
      );
    }
    return { kind: 'sent', attemptNumber, outcome, address };
  };

  /** @throws when a secret cannot be opened here: another worker may hold its key, and until then there was no attempt. */
  async function signed(ref: NotificationRef, opened: Opened): Promise<Record<string, string>> {
    try {
      return headersOf(deps, opened, Math.floor(now().getTime() / 1_000));
    } catch (error) {
      const { notificationId } = ref;
      warn({ ...ref, err: error }, 'a notification cannot be signed: is a key missing from WEBHOOK_KEYS?');
      await forgetAttempt(db, { notificationId, attemptNumber: opened.attemptNumber });
      throw error;
    }
  }
}

const EVENT_ID = new RegExp(`^evt_${ULID_PATTERN}$`);

/**
 * Whether the body says what its row does; what does not will not by trying again. The check comes before the signature, which would
 * vouch for it. A test names an application that does not exist.
 */
function isEvent(row: Opened['notification']): boolean {
  const { applicationId, sequence, merchantReference } = row;
  const isTest = row.eventType === TEST_EVENT_TYPE;
  try {
    const { data, ...event } = JSON.parse(row.body) as Partial<ApplicationEvent>;
    return (
      EVENT_ID.test(row.eventId) &&
      event.event_id === row.eventId &&
      event.event_type === row.eventType &&
      event.environment === row.environment &&
      isTest === (applicationId === null) &&
      event.sequence === (isTest ? TEST_SEQUENCE : sequence) &&
      data?.credit_application_id === (applicationId ?? TEST_APPLICATION_ID) &&
      data.merchant_reference === (isTest ? TEST_REFERENCE : merchantReference) &&
      `credit_application.${data.status}` === row.eventType
    );
  } catch {
    return false;
  }
}

function headersOf(
  { keyRing, hmac, sign }: Pick<ActivityDeps, 'keyRing' | 'hmac' | 'sign'>,
  { notification, endpoint, secrets, keyPairs }: Opened,
  timestamp: number,
): Record<string, string> {
  const { eventId, eventType, body, partnerId, environment } = notification;
  const { endpointId } = endpoint;
  const live = secrets.map((sealed) => keyRing.open(sealed, { endpointId, secretId: sealed.secretId }));
  if (live.length === 0) throw new KeyRingError(`endpoint ${endpointId} has no secret to sign with`);
  const pairs = keyPairs.map((sealed) => ({
    publicKey: sealed.publicKey,
    privateKey: keyRing.open(sealed, { ...sealed, partnerId, environment }),
  }));
  if (pairs.length === 0) throw new KeyRingError(`${partnerId} has no ${environment} key pair to sign with`);
  return {
    ...signatureHeaders({ body, eventId, timestamp, secrets: live, keyPairs: pairs, hmac, sign }),
    ...(eventType === TEST_EVENT_TYPE && { 'Service-Test': 'true' }),
  };
}
