import type { EventEmitter } from 'node:events';
import type { AttemptFacts, EndedNotification } from '../activities';
import type { NotificationRef } from '../db/notifications/notification';
import type { DeliveryOutcome } from '../domain/delivery-outcome';

/** What happens in a worker. Its parts emit it; metrics, speeds, beat and dispatcher listen. */
interface WorkerEventMap {
  attempted: [outcome: DeliveryOutcome, attempt: AttemptFacts];
  recorded: [
    attempt: { readonly notificationId: string; readonly attemptNumber: number },
    durationMs: number,
  ];
  /** Without being delivered, or held. */
  ended: [end: EndedNotification];
  /** Put back into the queue, as it found no slot. */
  requeued: [notification: NotificationRef];
  /** What the table of processes says of this one is not true any more. */
  changed: [];
}

export type WorkerEmitter = EventEmitter<WorkerEventMap>;
