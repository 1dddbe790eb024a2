import type { ClaimedNotification } from '../db/notifications/claim';
import type { Sql } from '../db/postgres/connect';
import type { KeyRing } from '../db/endpoints/key-ring';
import type { DeliveryOutcome } from '../domain/delivery-outcome';
import type { HmacSha256, SignEd25519 } from '../domain/webhook-signature';
import type { SendSlots } from './send-slots';

export interface ActivityDeps {
  /** For statements that are prepared (`plannedOnce`). */
  readonly sql: Sql;
  readonly keyRing: KeyRing;
  /** One guarded, bounded POST (outbound/). Throws only for our own faults. */
  readonly send: SendWebhook;
  readonly hmac: HmacSha256;
  readonly sign: SignEd25519;
  readonly sendSlots: SendSlots;
  readonly now: () => Date;
  readonly monotonicMs: () => number;
  /** Reports to operators. */
  readonly warn: (details: Readonly<Record<string, unknown>>, message: string) => void;
  readonly onAttempt: (outcome: DeliveryOutcome, attempt: AttemptFacts) => void;
  /** The outcome of an attempt has been written down, which took so long. */
  readonly onRecorded: (
    attempt: { readonly notificationId: string; readonly attemptNumber: number },
    durationMs: number,
  ) => void;
  /** A notification has ended otherwise than delivered, or is held. */
  readonly onEnd: (end: EndedNotification) => void;
  /** Slots for attempts within a workflow task; null for what has none in this process. */
  readonly fastPath: {
    enter(notificationId: string): { readonly endpointId: string; leave(): void } | null;
  };
}

export interface EndedNotification {
  readonly state: string;
  readonly reason: string;
  readonly eventType: string;
}

/** What is known of an attempt besides its outcome; nothing of it is secret. */
export interface AttemptFacts extends Omit<ClaimedNotification, 'applicationId'> {
  readonly attemptNumber: number;
  readonly endpointId: string;
  /** Milliseconds from the commit of the notification to the end of the attempt. */
  readonly ageMs: number;
}

export type SendWebhook = (request: {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}) => Promise<{
  readonly outcome: DeliveryOutcome;
  /** The first 8 KiB of what was answered; null when there was nothing. */
  readonly answer: string | null;
  /** Address that was connected to; null when none was. */
  readonly address: string | null;
  /** A word about a failure without an answer: `ECONNREFUSED`. */
  readonly detail: string | null;
  /** How far our clock is ahead of the endpoint's, in milliseconds; null when it did not say. */
  readonly clockSkewMs?: number | null;
}>;
