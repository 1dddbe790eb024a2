import { readSignable } from '../contracts/signable-event';
import { TEST_APPLICATION_ID, TEST_REFERENCE, TEST_SEQUENCE } from '../contracts/webhook-event';
import { noteSurplus } from '../db/endpoints/endpoints';
import { KeyRingError, type KeyRing } from '../db/endpoints/key-ring';
import {
  endNotification,
  forgetAttempt,
  keepAnswer,
  openAttempt,
  type Ladders,
  type NotificationEnd,
  type OpenedAttempt,
  type OpenOptions,
} from '../db/notifications/attempt';
import type { ClaimedNotification } from '../db/notifications/claim';
import type { NotificationRef } from '../db/notifications/notification';
import type { Sql } from '../db/postgres/connect';
import type { DeliveryOutcome, Over, SentWebhook, Wait } from '../domain/delivery-outcome';
import type { Tenant } from '../domain/tenant';
import { TEST_EVENT_TYPE, ULID_PATTERN } from '../domain/notification-states';
import { signatureHeaders, type HmacSha256, type SignEd25519 } from '../domain/webhook';
import type { Refusals } from './refusals';

export interface AttemptDeps {
  /** A connection for prepared statements. */
  readonly sql: Sql;
  /** Of new deliveries. */
  readonly ladders: Ladders;
  readonly keyRing: KeyRing;
  readonly send: SendWebhook;
  readonly hmac: HmacSha256;
  readonly sign: SignEd25519;
  /** Whether our own network is at fault (worker/reach.ts). */
  readonly reach: Reach;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
  readonly warn: (details: Readonly<Record<string, unknown>>, message: string) => void;
  readonly onAttempt: (outcome: DeliveryOutcome, attempt: AttemptFacts) => void;
  /** A notification has ended without being delivered, or is held. */
  readonly onEnd: (end: EndedNotification) => void;
  readonly refusals: Refusals;
}

/** Whose endpoint an attempt is for. */
export interface ReachedBy extends Tenant {
  readonly url: string;
}

/** How a delivery waits while our network reaches nobody. */
export interface Outage {
  /** Whole milliseconds. */
  readonly waitMs: number;
  /** Since when, Unix milliseconds; null when only one attempt failed so. */
  readonly sinceMs: number | null;
}

interface Reach {
  /** Makes an attempt, and gives a failure that is ours the outcome `ours`. */
  judged(of: ReachedBy, send: () => Promise<SentWebhook>): Promise<SentWebhook>;
  /** Null without an outage. `waitMs` 0: there is one, and this endpoint is tried now. */
  turn(queue: string): Outage | null;
}

export interface EndedNotification {
  readonly state: string;
  readonly reason: string;
  readonly eventType: string;
}

export type SendWebhook = (request: {
  readonly endpointId: string;
  /** Whether the endpoint gets a connection for this request alone. */
  readonly alone: boolean;
  /** Called when it has sent bytes that belong to no request, also after the answer. */
  readonly onSurplus: () => void;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}) => Promise<SentWebhook>;

export interface AttemptFacts extends Omit<ClaimedNotification, 'applicationId'> {
  readonly attemptNumber: number;
  readonly endpointId: string;
  /** Milliseconds from the commit of the notification to the end of the attempt. */
  readonly ageMs: number;
}

/** An attempt that was made. It contains ids and outcomes only, because workflow histories store it. */
export interface MadeAttempt {
  readonly kind: 'sent';
  readonly attemptNumber: number;
  readonly outcome: DeliveryOutcome;
  readonly address: string | null;
}

type Sending = <T>(send: () => Promise<T>) => Promise<T>;
type Opened = Extract<OpenedAttempt, { kind: 'open' }>;

/** Makes an attempt, or ends or holds a notification that cannot be sent. */
export function createAttempt(deps: AttemptDeps) {
  const { sql, ladders, send, reach, now, warn, monotonicMs, onEnd, refusals } = deps;

  async function refuse(ref: NotificationRef, { state, reason }: NotificationEnd): Promise<Over> {
    warn({ ...ref, state, reason }, 'a notification is not sent');
    const eventType = await endNotification(sql, ref, { state, reason });
    if (eventType !== null) onEnd({ state, reason, eventType });
    return { kind: 'over', status: state, reason };
  }

  async function open(ref: NotificationRef, options: OpenOptions): Promise<OpenedAttempt> {
    try {
      const opened = await openAttempt(sql, ref, options);
      refusals.opened(ref.notificationId);
      return opened;
    } catch (error) {
      if (refusals.isPoison(ref.notificationId, error)) return { kind: 'poison' };
      throw error;
    }
  }

  /** @throws when no key here opens a secret: another worker may have the key. No attempt was made. */
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

  async function keepSurplus(endpointId: string, about: Readonly<Record<string, unknown>>): Promise<void> {
    const details = { ...about, endpointId };
    try {
      if (await noteSurplus(sql, endpointId))
        warn(
          details,
          'an endpoint sent bytes that belong to no request: it gets a connection for each attempt for a day',
        );
    } catch (error) {
      warn(
        { ...details, err: error },
        'the surplus bytes of an endpoint were not noted: other workers do not know',
      );
    }
  }

  async function makeAttempt(ref: NotificationRef, opened: Opened, sending: Sending): Promise<MadeAttempt> {
    const { notification, attemptNumber, endpoint } = opened;
    const { partnerId, environment, eventType, requestId, traceParent, ageMs, body } = notification;
    const { endpointId, url, alone } = endpoint;
    const openedMs = monotonicMs();
    const headers = await signed(ref, opened);
    const about = { ...ref, attemptNumber, requestId, partnerId, environment, eventType };
    const onSurplus = () => void keepSurplus(endpointId, about);
    const { outcome, answer, address, detail } = await reach.judged({ partnerId, environment, url }, () =>
      sending(() => send({ endpointId, alone, onSurplus, url, headers, body })),
    );
    deps.onAttempt(outcome, { ...about, traceParent, endpointId, ageMs: ageMs + monotonicMs() - openedMs });
    if (outcome.kind === 'failed' && outcome.failure === 'blocked_address') {
      warn(
        { ...about, endpointId, detail },
        'an endpoint leads to where webhooks may not go; nothing was sent: ask the partner',
      );
    }
    const kept = answer ?? detail;
    if (kept !== null && kept !== '') {
      // The partner's answer is useful, but a failure to store it must not send the event again.
      await keepAnswer(sql, { notificationId: ref.notificationId, attemptNumber }, kept).catch(
        (error: unknown) => warn({ ...about, err: error }, 'the answer of an endpoint was not kept'),
      );
    }
    return { kind: 'sent', attemptNumber, outcome, address };
  }

  /**
   * @param onlyEndpoint any other endpoint is answered `other_endpoint`; null allows all
   * @param sending makes the request, and sees how long it takes
   */
  return async function attempt(
    ref: NotificationRef,
    onlyEndpoint: string | null,
    sending: Sending = (send) => send(),
  ): Promise<MadeAttempt | Wait | Over | { readonly kind: 'other_endpoint' }> {
    const opened = await open(ref, { onlyEndpoint, ladders });
    switch (opened.kind) {
      case 'open':
        return isEvent(opened.notification)
          ? makeAttempt(ref, opened, sending)
          : refuse(ref, { state: 'failed', reason: 'poison' });
      case 'paused':
        warn({ ...ref }, 'no attempt is made: deliveries to this partner are paused');
        return {
          kind: 'over',
          status: 'paused',
          reason: 'deliveries to this partner are; the next generation continues',
        };
      case 'wait':
      case 'over':
      case 'other_endpoint':
        return opened;
      case 'poison':
      case 'monthly_limit':
        return refuse(ref, { state: 'failed', reason: opened.kind });
      case 'no_endpoint': {
        // A test is answered now. An event of an application waits for an endpoint.
        const state = opened.eventType === TEST_EVENT_TYPE ? 'failed' : 'held';
        return refuse(ref, { state, reason: opened.reason });
      }
    }
  };
}

const EVENT_ID = new RegExp(`^evt_${ULID_PATTERN}$`);

/** Checks before it is signed that the body is one of ours, and agrees with its row. A test names no application. */
function isEvent(row: Opened['notification']): boolean {
  const { applicationId, sequence, merchantReference } = row;
  const isTest = row.eventType === TEST_EVENT_TYPE;
  const event = readSignable(row.body);
  if (event === null) return false;
  const { data } = event;
  return (
    EVENT_ID.test(row.eventId) &&
    event.event_id === row.eventId &&
    event.event_type === row.eventType &&
    event.environment === row.environment &&
    isTest === (applicationId === null) &&
    event.sequence === (isTest ? TEST_SEQUENCE : sequence) &&
    data.credit_application_id === (applicationId ?? TEST_APPLICATION_ID) &&
    data.merchant_reference === (isTest ? TEST_REFERENCE : merchantReference) &&
    `credit_application.${data.status}` === row.eventType
  );
}

function headersOf(
  { keyRing, hmac, sign }: Pick<AttemptDeps, 'keyRing' | 'hmac' | 'sign'>,
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
