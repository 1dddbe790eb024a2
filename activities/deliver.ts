import { ApplicationFailure } from '@temporalio/common';
import {
  endNotification,
  ForeignResult,
  readDue,
  recordAttempt,
  requeue,
  type NotificationEnd,
} from '../db/notifications/attempt';
import { queueName, type NotificationRef } from '../db/notifications/notification';
import { utc, type DeliveryOutcome, type Next, type Over, type Wait } from '../domain/delivery-outcome';
import { describeOperatorEvent } from '../domain/operator-event';
import { withTimeout } from '../timing/timing';
import { createAttempt, type AttemptDeps, type MadeAttempt } from './attempt';

export interface DeliverDeps extends AttemptDeps {
  /** Runs an attempt if its endpoint has a free slot. */
  readonly sendSlots: {
    run<T>(
      queue: string,
      task: () => Promise<T>,
      of: { readonly round?: number; readonly most?: number },
    ): Promise<T | Busy>;
  };
  /** A delivery that has found no slot, or no network, so often is put back into the queue. */
  readonly mostBusyRounds: number;
  /** A delivery was put back into the queue, as it found no slot. */
  readonly onRequeued: (notification: NotificationRef) => void;
  /** Slots for attempts within a workflow task. Returns null when this process reserved none. */
  readonly fastPath: {
    enter(notificationId: string): {
      readonly endpointId: string;
      readonly queue: string;
      /** Attempts at once that its endpoint may have. */
      readonly most: number;
      readonly sending: <T>(send: () => Promise<T>) => Promise<T>;
      leave(): void;
    } | null;
  };
  readonly onRecorded: (
    attempt: { readonly notificationId: string; readonly attemptNumber: number },
    durationMs: number,
  ) => void;
}

/** No attempt was made, because the endpoint has no free slot. The workflow asks again later. */
export interface Busy {
  readonly kind: 'busy';
  /** Whole milliseconds. */
  readonly waitMs: number;
}

interface DeliverOrder extends NotificationRef {
  /** How often it has asked for a slot, this time included. */
  readonly round?: number;
}

/** An attempt that was made, or what follows without one. */
type Delivered = (MadeAttempt & { readonly next: Next | null }) | Next;

export interface AttemptResult {
  readonly notificationId: string;
  readonly attemptNumber: number;
  readonly outcome: DeliveryOutcome;
  readonly address: string | null;
}

/** No endpoint has this id. An opening for it only reads what follows. */
const NO_ENDPOINT = '';
/**
 * A record that takes longer is left to an activity of its own. With the attempt, which ends after 20 s, it
 * stays below the timeout of 40 s, after which Temporal would repeat the send.
 */
const RECORD_WITHIN_MS = 5_000;

/**
 * The activities that make an attempt. They throw only for our own faults. Temporal then repeats them, which
 * closes the row of the first try as `unknown` and sends the event again. So a failed record does not fail
 * them: `next` is then null, and `recordResult` records.
 */
export function createDelivery(deps: DeliverDeps) {
  const { sql, sendSlots, reach, fastPath, mostBusyRounds, now, warn } = deps;
  const attempt = createAttempt(deps);
  const recordResult = createRecordResult(deps);

  async function recorded(ref: NotificationRef, sent: MadeAttempt | Wait | Over): Promise<Delivered> {
    if (sent.kind !== 'sent') return sent;
    const { notificationId, generation } = ref;
    const { attemptNumber, outcome, address } = sent;
    const recording = recordResult({ notificationId, attemptNumber, outcome, address });
    try {
      return { ...sent, next: await withTimeout(recording, RECORD_WITHIN_MS, 'the record') };
    } catch (error) {
      warn({ notificationId, generation, err: error }, 'an attempt is not recorded yet; it will be');
      return { ...sent, next: null };
    }
  }

  const waitFor = (
    because: 'busy' | 'outage',
    waitMs: number,
    sinceMs: number | null,
    attempts = 0,
  ): Wait => ({
    kind: 'wait',
    because,
    attempts,
    waitMs,
    untilMs: now().getTime() + waitMs,
    sinceMs,
  });

  /** Ends the workflow, whose history grows with every round. */
  async function putBack({ notificationId, generation }: NotificationRef, waitMs: number): Promise<Over> {
    const ref = { notificationId, generation };
    if (!(await requeue(sql, ref, waitMs))) return { kind: 'over', status: 'superseded', reason: null };
    deps.onRequeued(ref);
    const until = utc(now().getTime() + waitMs);
    const reason = `there was no free slot, or no network of ours, in ${mostBusyRounds} rounds; the next generation continues at ${until}`;
    return { kind: 'over', status: 'queued', reason };
  }

  /** Makes an attempt if one is due, and its endpoint has a free slot. */
  async function sendAttempt({ round = 1, ...ref }: DeliverOrder): Promise<Delivered> {
    const due = await readDue(sql, ref);
    if (due === null) {
      const said = await attempt(ref, NO_ENDPOINT);
      return said.kind === 'other_endpoint' ? { kind: 'due' } : recorded(ref, said);
    }
    const queue = queueName(due);
    const last = round >= mostBusyRounds;
    const outage = reach.turn(queue);
    if (outage !== null && last) return putBack(ref, outage.waitMs);
    if (outage !== null && outage.waitMs > 0)
      return waitFor('outage', outage.waitMs, outage.sinceMs, due.attempts);
    const sent = await sendSlots.run(queue, () => attempt(ref, null), { round });
    if (sent.kind === 'other_endpoint') throw new Error('no endpoint was asked for');
    if (sent.kind !== 'busy') return recorded(ref, sent);
    return last ? putBack(ref, sent.waitMs) : waitFor('busy', sent.waitMs, null, due.attempts);
  }

  /**
   * Makes the first attempt within the workflow task, if this process has reserved a slot for it, which it
   * does for fast endpoints.
   * @returns null when it has none, also after a crash: `sendAttempt` makes it then
   */
  async function attemptAtOnce(ref: NotificationRef): Promise<Delivered | null> {
    const slot = fastPath.enter(ref.notificationId);
    if (slot === null) return null;
    try {
      if ((reach.turn(slot.queue)?.waitMs ?? 0) > 0) return null;
      const { queue, endpointId, most } = slot;
      const sent = await sendSlots.run(queue, () => attempt(ref, endpointId, slot.sending), { most });
      return sent.kind === 'other_endpoint' || sent.kind === 'busy' ? null : await recorded(ref, sent);
    } finally {
      slot.leave();
    }
  }

  return { sendAttempt, attemptAtOnce, recordResult };
}

/** Records the outcome of an attempt. A second record changes nothing. */
function createRecordResult({ sql, monotonicMs, warn, onRecorded, onEnd }: DeliverDeps) {
  return async function recordResult(result: AttemptResult): Promise<Next> {
    const begunMs = monotonicMs();
    const { notificationId, attemptNumber, outcome, address } = result;
    const { next, event, ended } = await recordAttempt(sql, result, { outcome, address }).catch(
      (error: unknown) => {
        if (!(error instanceof ForeignResult)) throw error;
        warn({ notificationId, attemptNumber }, `a reported result counts for nothing: ${error.message}`);
        // Another worker has reported a result, or the database was restored. A retry would not help.
        // The workflow fails, the reconciler notices, and a new workflow makes the delivery.
        throw ApplicationFailure.nonRetryable(error.message, 'foreign_result');
      },
    );
    if (ended !== null && next.kind === 'over')
      onEnd({ state: next.status, reason: next.reason ?? '', eventType: ended });
    if (event !== null) {
      const { kind, partnerId, environment, endpointId, details } = event;
      warn(
        { kind, partnerId, environment, endpointId, notificationId, ...details },
        describeOperatorEvent(kind, details),
      );
    }
    onRecorded(result, monotonicMs() - begunMs);
    return next;
  };
}

/** Ends a delivery that an operator cancels on Temporal's side. */
export function createEndDelivery({ sql, onEnd }: Pick<AttemptDeps, 'sql' | 'onEnd'>) {
  return async function endDelivery(ref: NotificationRef & { readonly end: NotificationEnd }): Promise<void> {
    const eventType = await endNotification(sql, ref, ref.end);
    if (eventType !== null) onEnd({ ...ref.end, eventType });
  };
}
