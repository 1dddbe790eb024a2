import {
  ApplicationFailure,
  CancellationScope,
  condition,
  defineQuery,
  defineSignal,
  isCancellation,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import { ApplicationFailureCategory, defineSearchAttributeKey } from '@temporalio/common';
import { afterOutcome, describeOutcome, seconds } from '../domain/delivery-outcome';
import { nextWait, type Wait } from '../domain/retry-schedule';
import { SEARCH_ATTRIBUTE } from '../domain/notification-states';
import { createStory, type DeliveryProgress } from './delivery-story';
import { createSteps } from './delivery-steps';
import { DELIVERY_SIGNALS } from './names';

/** Ids only; the body, the address and the secrets stay in Postgres. */
interface DeliverNotificationInput {
  readonly notificationId: string;
  readonly generation: number;
  /** Wait before each attempt, in milliseconds; fixed for this delivery when it starts. */
  readonly ladderMs: readonly number[];
  /** Names the endpoint, for the limit on what is under way to it. */
  readonly queue: string;
  /** Whether the first attempt runs within the workflow task. */
  readonly fast: boolean;
}

/**
 * The result of a workflow that completed. A delivery that failed ends its workflow as Failed, with the reason as the type
 * of the failure; one that was cancelled ends it as Canceled.
 */
interface DeliveryEnd {
  /** `superseded`: a later generation has taken over, or the notification was cancelled before this began. */
  readonly status: 'delivered' | 'held' | 'superseded';
  readonly attempts: number;
}

export const retryNowSignal = defineSignal(DELIVERY_SIGNALS.retryNow);
export const pauseSignal = defineSignal(DELIVERY_SIGNALS.pause);
export const resumeSignal = defineSignal(DELIVERY_SIGNALS.resume);
export const progressQuery = defineQuery<DeliveryProgress>('progress');

const WHY: Record<Wait['because'], string> = {
  ladder: 'retry ladder',
  retry_after: 'the endpoint asked for it (Retry-After)',
  busy: 'enough sends to this endpoint are under way',
};

const statusKey = defineSearchAttributeKey(SEARCH_ATTRIBUTE.status, 'KEYWORD');

/**
 * Delivers one notification: attempt, wait, attempt, until the partner has answered 2xx or the ladder is exhausted. What
 * the partner does is a result; only our own faults are retried by Temporal. Temporal's own cancellation ends it between
 * attempts: one that is under way is finished and recorded first.
 * @throws ApplicationFailure when the delivery failed; its type is the reason, such as `exhausted`.
 */
export async function deliverNotification(input: DeliverNotificationInput): Promise<DeliveryEnd> {
  const { notificationId, generation, ladderMs, queue } = input;
  const steps = createSteps({ notificationId, generation, queue });

  /** What operators have asked for. */
  const orders = { wake: false, paused: false };
  const story = createStory(notificationId);
  /** Steps of the ladder that have been made, by this workflow and by one that it replaces; the database counts them. */
  let step = 0;
  /** Whether what is planned is known here. */
  let told = false;
  let status = 'sending';
  setHandler(retryNowSignal, () => void (orders.wake = true));
  setHandler(pauseSignal, () => void (orders.paused = true));
  setHandler(resumeSignal, () => void (orders.paused = false));
  setHandler(progressQuery, () => ({ ...story.progress(), paused: orders.paused }));

  try {
    let wait: Wait = { waitMs: ladderMs[0] ?? 0, because: 'ladder' };
    for (let { fast } = input; ; fast = false) {
      await waitForTurn(wait);
      const next = await CancellationScope.nonCancellable(() => attempt(fast));
      if ('status' in next) return next;
      wait = next;
    }
  } catch (error) {
    if (isCancellation(error)) {
      const end = { state: 'cancelled', reason: 'operator' } as const;
      await CancellationScope.nonCancellable(() => steps.endDelivery({ notificationId, generation, end }));
      closeStory('cancelled', 'operator');
    }
    throw error;
  }

  /** Makes and records an attempt. @returns the wait before the next one, or the end. */
  async function attempt(fast: boolean): Promise<Wait | DeliveryEnd> {
    const sent = await steps.send(step + 1, fast, told);
    // Neither an attempt nor a step of the ladder was spent.
    if (sent.kind === 'busy') return { waitMs: sent.waitMs, because: 'busy' };
    if (sent.kind === 'superseded') return complete('superseded');
    if (sent.kind === 'over') {
      if (sent.state === 'failed') throw fail(sent.reason ?? 'failed');
      return complete(sent.state === 'delivered' || sent.state === 'held' ? sent.state : 'superseded');
    }
    told = true;
    if (sent.kind === 'wait') {
      step = sent.step;
      orders.paused ||= sent.paused;
      tell('retrying');
      return { waitMs: sent.waitMs, because: 'ladder' };
    }
    const { outcome, attemptNumber, address } = sent;
    step = sent.step + 1;
    const then = afterOutcome(outcome);
    const retryAfterMs = outcome.kind === 'failed' ? outcome.retryAfterMs : null;
    const coming =
      then === 'retry' ? nextWait({ ladderMs, attemptsMade: step, retryAfterMs, random: Math.random }) : null;
    const reason = then === 'stop' ? 'gone' : 'exhausted';
    const end = then === 'done' || coming !== null ? null : ({ state: 'failed', reason } as const);
    const text = describeOutcome(outcome);
    story.attempted(attemptNumber, text);
    if (!sent.recorded) {
      const summary = `attempt ${attemptNumber} ${text}`;
      const retryInMs = coming?.waitMs ?? null;
      const result = { notificationId, attemptNumber, outcome, address, end, retryInMs };
      await steps.recordResult.executeWithOptions({ summary }, [result]);
    }
    if (then === 'done') return complete('delivered');
    if (coming === null) throw fail(reason);
    tell('retrying');
    return coming;
  }

  /** Tells where a delivery stands that is under way. How it ended is told by the end of the workflow. */
  function tell(next: string): void {
    setCurrentDetails(story.text());
    if (next !== status) upsertSearchAttributes([{ key: statusKey, value: next }]);
    status = next;
  }

  function complete(end: DeliveryEnd['status']): DeliveryEnd {
    closeStory(end, null);
    return { status: end, attempts: story.progress().attempts };
  }

  function fail(reason: string): ApplicationFailure {
    closeStory('failed', reason);
    return ApplicationFailure.create({
      type: reason,
      message: story.lastAttempt() ?? 'not sent',
      nonRetryable: true,
      // The partner's failure, not ours: no error in the worker's log.
      category: ApplicationFailureCategory.BENIGN,
    });
  }

  function closeStory(end: string, reason: string | null): void {
    story.ended(end, reason);
    setCurrentDetails(story.text());
  }

  /**
   * Waits out a step of the ladder, or until an operator says otherwise; no attempt while paused.
   * @throws CancelledFailure once the workflow has been asked to end.
   */
  async function waitForTurn({ waitMs, because }: Wait): Promise<void> {
    if (waitMs > 0) {
      const why = WHY[because];
      story.waiting(waitMs, why);
      setCurrentDetails(story.text());
      const summary = `wait ${seconds(waitMs)} before attempt ${step + 1}: ${why}`;
      await condition(() => orders.wake, waitMs, { summary });
    }
    if (orders.paused && !orders.wake) {
      const before = status;
      story.paused();
      tell('paused');
      await condition(() => !orders.paused || orders.wake);
      tell(before);
    }
    if (orders.wake) told = true;
    // One order is good for one attempt; one that comes during it is for the next.
    orders.wake = false;
  }
}
