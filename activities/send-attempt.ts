import { TEST_EVENT_TYPE } from '../contracts/webhook-event';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import { signatureHeaders } from '../domain/webhook-signature';
import { KeyRingError } from '../db/key-ring';
import { NOT_REGISTERED } from '../db/queries/hold';
import { openAttempt, type OpenedAttempt } from '../db/queries/open-attempt';
import { endNotification, keepAnswer, type EndState } from '../db/queries/record-attempt';
import type { ActivityDeps } from './deps';
import type { Busy } from './lanes';

/** Which notification, and in whose name: a workflow of an older generation is told that it is over. */
export interface NotificationRef {
  readonly notificationId: string;
  readonly generation: number;
}

/** What `sendAttempt` is asked to send. */
export interface SendOrder extends NotificationRef {
  /** Names the endpoint, for the limit on what is under way to it; workflows of releases before that limit have none. */
  readonly lane?: string;
}

/** What became of one step of the ladder. Ids and outcomes only: it is stored in the workflow's history. */
export type SendResult =
  | {
      readonly kind: 'sent';
      readonly attemptNumber: number;
      readonly outcome: DeliveryOutcome;
      readonly address: string | null;
    }
  | Busy
  /** No attempt was made, and none will be. */
  | { readonly kind: 'ended'; readonly state: string; readonly reason: string };

type Opened = Extract<OpenedAttempt, { kind: 'open' }>;
type Refusal = { readonly state: EndState; readonly reason: string };

/**
 * Makes one attempt: opens its row, signs and sends. It returns for whatever the partner does, and throws only for our
 * own faults, so that Temporal repeats it; a repetition closes the row as `unknown` and sends the same event again.
 */
export function createSendAttempt(deps: ActivityDeps) {
  const { db, send, now, warn, lanes } = deps;

  return async function sendAttempt({ lane, ...ref }: SendOrder): Promise<SendResult> {
    return lane === undefined ? attempt(ref) : lanes.within(lane, () => attempt(ref));
  };

  async function attempt(ref: NotificationRef): Promise<SendResult> {
    const opened = await openAttempt(db, ref);
    if (opened.kind === 'over') return { kind: 'ended', state: opened.state, reason: 'over' };
    if (opened.kind !== 'open') return refuse(ref, refusalOf(opened));
    if (!isEvent(opened.notification)) return refuse(ref, { state: 'failed', reason: 'poison' });

    const { notification, attemptNumber, endpoint } = opened;
    const headers = headersOf(deps, opened, Math.floor(now().getTime() / 1_000));
    const { outcome, answer, address, detail } = await send({
      url: endpoint.url,
      headers,
      body: notification.body,
    });
    deps.onAttempt(outcome, notification.environment);
    if (outcome.kind === 'failed' && outcome.failure === 'blocked_address') {
      warn(
        { ...ref, endpointId: endpoint.endpointId, detail },
        'an endpoint leads to where webhooks may not go; nothing was sent: ask the partner',
      );
    }
    const kept = answer ?? detail;
    if (kept !== null && kept !== '') {
      // What the partner answered is good to know, and not worth a second event when the database is away.
      await keepAnswer(db, { notificationId: ref.notificationId, attemptNumber }, kept).catch(
        (error: unknown) => warn({ ...ref, err: error }, 'the answer of an endpoint was not kept'),
      );
    }
    return { kind: 'sent', attemptNumber, outcome, address };
  }

  async function refuse(ref: NotificationRef, refusal: Refusal): Promise<SendResult> {
    warn({ ...ref, ...refusal }, 'a notification is not sent');
    await endNotification(db, ref, refusal);
    return { kind: 'ended', ...refusal };
  }
}

function refusalOf(opened: Exclude<OpenedAttempt, { kind: 'open' | 'over' }>): Refusal {
  if (opened.kind === 'monthly_limit') return { state: 'failed', reason: 'monthly_limit' };
  // A test exists to be heard of at once; what tells of an application waits for an endpoint.
  const state = opened.eventType === TEST_EVENT_TYPE ? 'failed' : 'held';
  return { state, reason: NOT_REGISTERED };
}

/** A body that is not the event it is stored for will not become one by trying again. */
function isEvent({ body, eventId }: Opened['notification']): boolean {
  try {
    return (JSON.parse(body) as { event_id?: unknown } | null)?.event_id === eventId;
  } catch {
    return false;
  }
}

function headersOf(
  { keyRing, hmac }: Pick<ActivityDeps, 'keyRing' | 'hmac'>,
  { notification, endpoint, secrets }: Opened,
  timestamp: number,
): Record<string, string> {
  const { eventId, eventType, body } = notification;
  const { endpointId } = endpoint;
  const live = secrets.map((sealed) => keyRing.open(sealed, { endpointId, secretId: sealed.secretId }));
  if (live.length === 0) throw new KeyRingError(`endpoint ${endpointId} has no secret to sign with`);
  return {
    'Content-Type': 'application/json; charset=utf-8',
    'User-Agent': 'partner-finance-quote-service/1',
    ...signatureHeaders({ body, eventId, timestamp, secrets: live, hmac }),
    ...(eventType === TEST_EVENT_TYPE && { 'Service-Test': 'true' }),
  };
}
