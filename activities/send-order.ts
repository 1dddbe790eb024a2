import type { DeliveryOutcome } from '../domain/delivery-outcome';
import type { NotificationState } from '../domain/notification-states';
import type { NotificationRef } from '../db/notifications/notification';
import type { Busy } from './send-slots';

/** Which notification, and as which generation: a workflow of an older one is told that it is over. */
export interface SendOrder extends NotificationRef {
  /** Names the endpoint, for the limit on what is under way to it. */
  readonly queue: string;
  /**
   * Whether the workflow knows what is planned: by an attempt of its own, by `wait`, or as somebody wants an attempt now. Else `wait` is
   * the answer when there is a plan, every time that the activity is repeated.
   */
  readonly told: boolean;
}

/** Ids and outcomes only: it is stored in the workflow's history. */
export type SendResult =
  | {
      readonly kind: 'sent';
      readonly attemptNumber: number;
      /** Steps of the retry ladder that had been made before it. */
      readonly step: number;
      readonly outcome: DeliveryOutcome;
      readonly address: string | null;
    }
  | Busy
  /** No attempt is due: this workflow replaces one that is gone, and goes on where that one was. */
  | { readonly kind: 'wait'; readonly step: number; readonly waitMs: number; readonly paused: boolean }
  /** No attempt was made, and none will be: the notification has ended, now or before, or is held. */
  | { readonly kind: 'over'; readonly state: NotificationState; readonly reason: string | null }
  /** A later generation has taken over. */
  | { readonly kind: 'superseded' };
