import type { DeliveryOutcome } from '../domain/delivery-outcome';
import type { NotificationState } from '../domain/notification-states';
import type { Busy } from './send-slots';

/** Which notification, and in whose name: a workflow of an older generation is told that it is over. */
export interface NotificationRef {
  readonly notificationId: string;
  readonly generation: number;
}

export interface SendOrder extends NotificationRef {
  /** Names the endpoint, for the limit on what is under way to it. */
  readonly queue: string;
}

/** Ids and outcomes only: it is stored in the workflow's history. */
export type SendResult =
  | {
      readonly kind: 'sent';
      readonly attemptNumber: number;
      readonly outcome: DeliveryOutcome;
      readonly address: string | null;
    }
  | Busy
  /** No attempt was made, and none will be: the notification has ended, now or before, or is held. */
  | { readonly kind: 'over'; readonly state: NotificationState; readonly reason: string | null }
  /** A later generation has taken over. */
  | { readonly kind: 'superseded' };
