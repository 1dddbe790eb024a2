import {
  condition,
  defineQuery,
  defineSignal,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
} from '@temporalio/workflow';
import { defineSearchAttributeKey } from '@temporalio/common';
import { afterOutcome, describeOutcome } from '../domain/delivery-outcome';
import { nextWait, type Wait } from '../domain/retry-schedule';
import { SEARCH_ATTRIBUTE } from '../domain/search-attributes';
import { createStory, type DeliveryProgress } from './delivery-story';
import { createSteps } from './delivery-steps';
import { DELIVERY_SIGNALS } from './names';

/** Ids only; the body, the address and the secrets stay in Postgres. */
export interface DeliverNotificationInput {
  readonly notificationId: string;
  readonly generation: number;
  /** Wait before each attempt, in milliseconds; fixed for this delivery when it starts. */
  readonly ladderMs: readonly number[];
  /** Names the endpoint, for the limit on what is under way to it; runs that began before that limit have none. */
  readonly lane?: string;
  /** Whether the first attempt runs within the workflow task; runs that were started without it do not. */
  readonly fast?: boolean;
}

/** How a delivery ended. */
export interface DeliveryEnd {
  readonly status: string;
  readonly reason: string | null;
  readonly attempts: number;
}

export const retryNowSignal = defineSignal(DELIVERY_SIGNALS.retryNow);
export const pauseSignal = defineSignal(DELIVERY_SIGNALS.pause);
export const resumeSignal = defineSignal(DELIVERY_SIGNALS.resume);
export const cancelSignal = defineSignal(DELIVERY_SIGNALS.cancel);
/** Where the delivery stands. */
export const progressQuery = defineQuery<DeliveryProgress>('progress');

const WHY: Record<Wait['because'], string> = {
  ladder: 'retry ladder',
  retry_after: 'the endpoint asked for it (Retry-After)',
  busy: 'enough sends to this endpoint are under way',
};

const statusKey = defineSearchAttributeKey(SEARCH_ATTRIBUTE.status, 'KEYWORD');

/**
 * Delivers one notification: attempt, wait, attempt, until the partner has answered 2xx or the ladder is exhausted.
 * What the partner does is a result and moves this loop on; only our own faults are retried by Temporal.
 */
export async function deliverNotification(input: DeliverNotificationInput): Promise<DeliveryEnd> {
  const { notificationId, generation, ladderMs, lane, fast = false } = input;
  const steps = createSteps({ notificationId, generation, ...(lane !== undefined && { lane }) }, fast);

  const orders = { wake: false, paused: false, cancelled: false };
  const story = createStory(notificationId);
  setHandler(retryNowSignal, () => void (orders.wake = true));
  setHandler(pauseSignal, () => void (orders.paused = true));
  setHandler(resumeSignal, () => void (orders.paused = false));
  setHandler(cancelSignal, () => void (orders.cancelled = true));
  setHandler(progressQuery, () => ({ ...story.progress(), paused: orders.paused }));

  let status = 'sending';
  const tell = (next: string) => {
    setCurrentDetails(story.text());
    if (next !== status) upsertSearchAttributes([{ key: statusKey, value: next }]);
    status = next;
  };
  const finish = (end: string, reason: string | null): DeliveryEnd => {
    story.ended(end, reason);
    tell(end);
    return { status: end, reason, attempts: story.progress().attempts };
  };

  let wait: Wait = { waitMs: ladderMs[0] ?? 0, because: 'ladder' };
  for (let made = 0; ; made += 1) {
    await waitForTurn(wait, made + 1);
    if (orders.cancelled) {
      await steps.endDelivery({
        notificationId,
        generation,
        end: { state: 'cancelled', reason: 'operator' },
      });
      return finish('cancelled', 'operator');
    }
    const sent = await steps.send(made + 1);
    if (sent.kind === 'ended') return finish(sent.state, sent.reason);
    if (sent.kind === 'busy') {
      // Neither an attempt nor a step of the ladder is spent.
      wait = { waitMs: sent.waitMs, because: 'busy' };
      made -= 1;
      continue;
    }

    const { outcome, attemptNumber, address } = sent;
    const then = afterOutcome(outcome);
    const retryAfterMs = outcome.kind === 'failed' ? outcome.retryAfterMs : null;
    const coming =
      then === 'retry'
        ? nextWait({ ladderMs, attemptsMade: made + 1, retryAfterMs, random: Math.random })
        : null;
    const reason = then === 'stop' ? 'gone' : 'exhausted';
    const end = then === 'done' || coming !== null ? null : ({ state: 'failed', reason } as const);
    const text = describeOutcome(outcome);
    story.attempted(attemptNumber, text);
    await steps.record(
      { notificationId, attemptNumber, outcome, address, end },
      `attempt ${attemptNumber} ${text}`,
    );
    if (then === 'done') return finish('delivered', null);
    if (coming === null) return finish('failed', reason);
    wait = coming;
    tell('retrying');
  }

  /** Waits out a step of the ladder, or until an operator says otherwise; no attempt while paused. */
  async function waitForTurn({ waitMs, because }: Wait, attempt: number): Promise<void> {
    if (waitMs > 0) {
      const why = WHY[because];
      story.waiting(waitMs, why);
      setCurrentDetails(story.text());
      const summary = `wait ${Number((waitMs / 1_000).toFixed(1))} s before attempt ${attempt}: ${why}`;
      await condition(() => orders.wake || orders.cancelled, waitMs, { summary });
    }
    if (orders.paused && !orders.wake && !orders.cancelled) {
      const before = status;
      story.paused();
      tell('paused');
      await condition(() => !orders.paused || orders.wake || orders.cancelled);
      tell(before);
    }
    // One order is good for one attempt; one that comes during it is for the next.
    orders.wake = false;
  }
}
