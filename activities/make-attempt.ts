import { TEST_EVENT_TYPE, ULID_PATTERN } from '../domain/notification-states';
import {
  TEST_APPLICATION_ID,
  TEST_REFERENCE,
  TEST_SEQUENCE,
  type ApplicationEvent,
} from '../contracts/webhook-event';
import { signatureHeaders } from '../domain/webhook-signature';
import { KeyRingError } from '../db/endpoints/key-ring';
import {
  endNotification,
  forgetAttempt,
  keepAnswer,
  openAttempt,
  type NotificationEnd,
  type OpenedAttempt,
} from '../db/notifications/attempt';
import type { NotificationRef } from '../db/notifications/notification';
import type { ActivityDeps } from './deps';
import type { SendOrder, SendResult } from './send-order';

type Opened = Extract<OpenedAttempt, { kind: 'open' }>;

/**
 * Makes an attempt of a notification, or ends or holds one that cannot be sent.
 * @param onlyEndpoint the endpoint that it must be for, else `other_endpoint`; null: whichever there is.
 */
export function createAttempt(deps: ActivityDeps) {
  const { sql, send, now, warn, monotonicMs, onEnd } = deps;

  /** Ends a notification without an attempt, or holds it. */
  async function refuse(ref: NotificationRef, refusal: NotificationEnd): Promise<SendResult> {
    warn({ ...ref, ...refusal }, 'a notification is not sent');
    const eventType = await endNotification(sql, ref, refusal);
    if (eventType !== null) onEnd({ ...refusal, eventType });
    return { kind: 'over', ...refusal };
  }

  return async function attempt(
    { told, ...ref }: Omit<SendOrder, 'queue'>,
    onlyEndpoint: string | null,
  ): Promise<SendResult | { readonly kind: 'other_endpoint' }> {
    const opened = await openAttempt(sql, ref, { onlyEndpoint, told });
    switch (opened.kind) {
      case 'open':
        return isEvent(opened.notification)
          ? makeAttempt(ref, opened)
          : refuse(ref, { state: 'failed', reason: 'poison' });
      case 'wait':
      case 'over':
      case 'superseded':
      case 'other_endpoint':
        return opened;
      case 'poison':
      case 'monthly_limit':
        return refuse(ref, { state: 'failed', reason: opened.kind });
      case 'no_endpoint': {
        // A test exists to be heard of at once; what tells of an application waits for an endpoint.
        const state = opened.eventType === TEST_EVENT_TYPE ? 'failed' : 'held';
        return refuse(ref, { state, reason: opened.reason });
      }
    }
  };

  async function makeAttempt(ref: NotificationRef, opened: Opened): Promise<SendResult> {
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
      await keepAnswer(sql, { notificationId: ref.notificationId, attemptNumber }, kept).catch(
        (error: unknown) => warn({ ...about, err: error }, 'the answer of an endpoint was not kept'),
      );
    }
    return { kind: 'sent', attemptNumber, step: opened.step, outcome, address };
  }

  /** @throws when a secret cannot be opened here: another worker may hold its key, and until then there was no attempt. */
  async function signed(ref: NotificationRef, opened: Opened): Promise<Record<string, string>> {
    try {
      return headersOf(deps, opened, Math.floor(now().getTime() / 1_000));
    } catch (error) {
      const { notificationId } = ref;
      warn({ ...ref, err: error }, 'a notification cannot be signed: is a key missing from WEBHOOK_KEYS?');
      await forgetAttempt(sql, { notificationId, attemptNumber: opened.attemptNumber });
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
