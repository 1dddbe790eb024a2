import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  condition,
  defineQuery,
  defineSignal,
  isCancellation,
  proxyActivities,
  proxyLocalActivities,
  setCurrentDetails,
  setHandler,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { ApplicationFailureCategory, defineSearchAttributeKey } from '@temporalio/common';
import type { LocalActivities, RecordActivities, SendActivities } from '../activities';
import { afterOutcome, describeOutcome, seconds, nextWait, type Wait } from '../domain/delivery-outcome';
import { SEARCH_ATTRIBUTE } from '../domain/notification-states';
import { DELIVERY_SIGNALS, sendsQueueOf } from './names';

/** Ids only. The body, the address and the secrets stay in Postgres. */
interface DeliverNotificationInput {
  readonly notificationId: string;
  readonly generation: number;
  /** Wait before each attempt, in milliseconds, fixed when the delivery starts. */
  readonly ladderMs: readonly number[];
  readonly queue: string;
  readonly fast: boolean;
}

// The result of a completed workflow. A failed delivery ends it as Failed, a cancelled one as Canceled.
interface DeliveryEnd {
  /**
   * `superseded`: a later generation has taken over, or the notification had been cancelled. `paused`:
   * deliveries to the partner are paused. `queued`: it found no free slot for long. After both, the next
   * generation continues.
   */
  readonly status: 'delivered' | 'held' | 'superseded' | 'paused' | 'queued';
  readonly attempts: number;
}

interface DeliveryProgress {
  readonly phase: 'sending' | 'waiting' | 'paused' | 'ended';
  readonly attempts: number;
  readonly log: readonly string[];
  readonly paused: boolean;
}

export const retryNowSignal = defineSignal(DELIVERY_SIGNALS.retryNow);
export const pauseSignal = defineSignal(DELIVERY_SIGNALS.pause);
export const resumeSignal = defineSignal(DELIVERY_SIGNALS.resume);
export const progressQuery = defineQuery<DeliveryProgress>('progress');

const WHY: Record<Wait['because'], string> = {
  ladder: 'retry ladder',
  retry_after: 'the endpoint asked for it (Retry-After)',
  busy: 'no slot is free for a send to this endpoint',
  outage: 'an attempt failed by a fault of ours',
};

const noNetwork = (sinceMs: number) =>
  `our network cannot reach anybody since ${new Date(sinceMs).toISOString().slice(0, 16).replace('T', ' ')}Z`;

/**
 * A worker takes up a timer within milliseconds: one that it takes up so much later has met an outage of
 * ours.
 */
const OUTAGE_MS = 10_000;

const statusKey = defineSearchAttributeKey(SEARCH_ATTRIBUTE.status, 'KEYWORD');

/**
 * Delivers one notification: attempt, wait, attempt, until the partner has answered 2xx or the ladder
 * is exhausted. A partner's failure is a result; Temporal retries only after our own faults. A
 * cancellation by Temporal ends the delivery between attempts, after an attempt under way was recorded.
 * @throws ApplicationFailure when the delivery failed; its type is the reason, such as `exhausted`
 */
export async function deliverNotification(input: DeliverNotificationInput): Promise<DeliveryEnd> {
  const delivery = new Delivery(input);
  try {
    let wait: Wait = { waitMs: input.ladderMs[0] ?? 0, because: 'ladder' };
    for (let { fast } = input; ; fast = false) {
      await delivery.waitForTurn(wait);
      const next = await CancellationScope.nonCancellable(() => delivery.attempt(fast));
      // Where its next generation would continue, an order to cancel, given meanwhile, still counts.
      const goesOn = 'status' in next && (next.status === 'paused' || next.status === 'queued');
      if (goesOn && CancellationScope.current().consideredCancelled) throw delivery.handOn();
      if ('status' in next) return next;
      wait = next;
    }
  } catch (error) {
    if (isCancellation(error)) await CancellationScope.nonCancellable(() => delivery.cancel());
    throw error;
  }
}

class Delivery {
  /** Steps of the ladder made by this workflow and by one that it replaces; the database counts them. */
  private step = 0;
  private told = false;
  /** Answers of `busy`, and rounds without a network of ours; 50 of them end the workflow. */
  private rounds = 0;
  private generation: number;
  private status = 'sending';
  private readonly orders = { wake: false, paused: false };
  private readonly story: Story;
  private readonly activities = createActivities();

  constructor(private readonly input: DeliverNotificationInput) {
    this.generation = input.generation;
    const { orders } = this;
    const story = createStory(input.notificationId);
    this.story = story;
    setHandler(retryNowSignal, () => void (orders.wake = true));
    setHandler(pauseSignal, () => void (orders.paused = true));
    setHandler(resumeSignal, () => void (orders.paused = false));
    setHandler(progressQuery, () => ({ ...story.progress(), paused: orders.paused }));
  }

  /**
   * Waits for the ladder's next step, an order, or the end of a pause.
   * @throws CancelledFailure when the workflow is to end
   */
  async waitForTurn({ waitMs, because, sinceMs }: Wait): Promise<void> {
    const { orders, story } = this;
    if (waitMs > 0) {
      const why = sinceMs == null ? WHY[because] : noNetwork(sinceMs);
      story.waiting(waitMs, why);
      setCurrentDetails(story.text());
      const summary = `wait ${seconds(waitMs)} before attempt ${this.step + 1}: ${why}`;
      const dueAt = Date.now() + waitMs;
      await condition(() => orders.wake, waitMs, { summary });
      const lateMs = Date.now() - dueAt;
      if (lateMs > OUTAGE_MS)
        story.interrupted(`${seconds(lateMs)} late: no worker took it up, or Temporal was away`);
    }
    if (orders.paused && !orders.wake) {
      const [before, pausedAt] = [this.status, Date.now()];
      story.paused();
      this.show('paused');
      await condition(() => !orders.paused || orders.wake);
      story.interrupted(`paused by an operator for ${seconds(Date.now() - pausedAt)}`);
      this.show(before);
    }
    if (orders.wake) this.told = true;
    // An order is used up by one attempt. An order during that attempt is for the next one.
    orders.wake = false;
  }

  /**
   * Makes and records an attempt.
   * @returns the wait before the next one, or the end
   */
  async attempt(fast: boolean): Promise<Wait | DeliveryEnd> {
    const { sent, recorded } = await this.send(fast);
    // Neither an attempt nor a step of the ladder was made.
    if (sent.kind === 'busy') {
      this.rounds += 1;
      return { waitMs: sent.waitMs, because: 'busy' };
    }
    if (sent.kind === 'outage') {
      this.rounds += 1;
      return { waitMs: sent.waitMs, because: 'outage', sinceMs: sent.sinceMs };
    }
    if (sent.kind === 'requeued') {
      const reason = `there was no free slot, or no network of ours, in ${this.rounds + 1} rounds; the next generation continues in ${seconds(sent.waitMs)}`;
      return this.complete('queued', reason);
    }
    if (sent.kind === 'paused')
      return this.complete('paused', 'deliveries to this partner are; the next generation continues');
    if (sent.kind === 'superseded') return this.complete('superseded');
    if (sent.kind === 'over') {
      if (sent.state === 'failed') throw this.fail(sent.reason ?? 'failed');
      return this.complete(sent.state === 'delivered' || sent.state === 'held' ? sent.state : 'superseded');
    }
    this.told = true;
    if (sent.kind === 'wait') {
      this.step = sent.step;
      this.orders.paused ||= sent.paused;
      this.show('retrying');
      return { waitMs: sent.waitMs, because: 'ladder' };
    }
    const { notificationId, ladderMs } = this.input;
    const { outcome, attemptNumber, address } = sent;
    const ours = outcome.kind === 'ours' ? outcome : null;
    // A failure of ours spends no step.
    this.step = sent.step + (ours === null ? 1 : 0);
    if (ours !== null) this.rounds += 1;
    const then = afterOutcome(outcome);
    const retryAfterMs = outcome.kind === 'failed' ? outcome.retryAfterMs : null;
    const ladder = () =>
      then === 'retry'
        ? nextWait({ ladderMs, attemptsMade: this.step, retryAfterMs, random: Math.random })
        : null;
    const wait: Wait | null =
      ours === null ? ladder() : { waitMs: ours.waitMs, because: 'outage', sinceMs: ours.sinceMs };
    const reason = then === 'stop' ? 'gone' : 'exhausted';
    const end = then === 'done' || wait !== null ? null : ({ state: 'failed', reason } as const);
    const text = describeOutcome(outcome);
    this.story.attempted(attemptNumber, text);
    if (!recorded) {
      const summary = `attempt ${attemptNumber} ${text}`;
      const retryInMs = wait?.waitMs ?? null;
      const result = { notificationId, attemptNumber, outcome, address, end, retryInMs };
      await this.activities.recordResult.executeWithOptions({ summary }, [result]);
    }
    if (then === 'done') return this.complete('delivered');
    if (wait === null) throw this.fail(reason);
    this.show('retrying');
    return wait;
  }

  /** Makes the next attempt: within the task if fast, else or after a refusal by the regular activity. */
  private async send(fast: boolean) {
    const { notificationId, generation, queue } = this.input;
    const { sendAtOnce, sendAttempt } = this.activities;
    const order = { notificationId, generation, queue, told: this.told, round: this.rounds + 1 };
    const summary = `attempt ${this.step + 1}: sign and POST`;
    if (fast) {
      const sent = await sendAtOnce.executeWithOptions({ summary }, [order]).catch(() => null);
      if (sent !== null && sent.kind !== 'declined') return { sent, recorded: sent.recorded };
    }
    return { sent: await sendAttempt.executeWithOptions({ summary }, [order]), recorded: false };
  }

  /** The row has been given its next generation already. */
  handOn(): CancelledFailure {
    this.generation += 1;
    return new CancelledFailure('cancelled');
  }

  async cancel(): Promise<void> {
    const { notificationId } = this.input;
    const { generation } = this;
    const end = { state: 'cancelled', reason: 'operator' } as const;
    await this.activities.endDelivery({ notificationId, generation, end });
    this.closeStory('cancelled', 'operator');
  }

  private show(status: string): void {
    setCurrentDetails(this.story.text());
    if (status !== this.status) upsertSearchAttributes([{ key: statusKey, value: status }]);
    this.status = status;
  }

  private complete(status: DeliveryEnd['status'], reason: string | null = null): DeliveryEnd {
    this.closeStory(status, reason);
    return { status, attempts: this.story.progress().attempts };
  }

  private fail(reason: string): ApplicationFailure {
    this.closeStory('failed', reason);
    return ApplicationFailure.create({
      type: reason,
      message: this.story.progress().log.at(-1) ?? 'not sent',
      nonRetryable: true,
      // This is the partner's failure, and no error in the worker's log.
      category: ApplicationFailureCategory.BENIGN,
    });
  }

  private closeStory(end: string, reason: string | null): void {
    this.story.ended(end, reason);
    setCurrentDetails(this.story.text());
  }
}

function createActivities() {
  const { sendAttempt } = proxyActivities<SendActivities>({
    taskQueue: sendsQueueOf(workflowInfo().taskQueue),
    // The whole exchange ends after 20 s. A missing heartbeat shows sooner that a worker has died.
    startToCloseTimeout: '40 seconds',
    heartbeatTimeout: '10 seconds',
    retry: { initialInterval: '500 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
  });
  const { recordResult, endDelivery } = proxyActivities<RecordActivities>({
    startToCloseTimeout: '15 seconds',
    retry: { initialInterval: '200 milliseconds', backoffCoefficient: 2, maximumInterval: '30 seconds' },
  });
  const { sendAtOnce } = proxyLocalActivities<LocalActivities>({
    startToCloseTimeout: '40 seconds',
    retry: { maximumAttempts: 1 },
  });
  return { sendAttempt, recordResult, endDelivery, sendAtOnce };
}

type Story = ReturnType<typeof createStory>;

/** The history of a delivery for operators, in the current details of Temporal's page and in the query. */
function createStory(notificationId: string) {
  const log: string[] = [];
  let attempts = 0;
  let phase: DeliveryProgress['phase'] = 'sending';
  let now = 'The first attempt is under way.';
  return {
    attempted(attemptNumber: number, outcome: string): void {
      attempts = attemptNumber;
      phase = 'sending';
      log.push(`attempt ${attemptNumber} ${outcome}`);
      now = `Attempt ${attemptNumber} ${outcome}.`;
    },
    waiting(waitMs: number, why: string): void {
      phase = 'waiting';
      now = `Waiting ${seconds(waitMs)} for attempt ${attempts + 1}: ${why}.`;
    },
    interrupted(how: string): void {
      log.push(`attempt ${attempts + 1} ${how}`);
    },
    paused(): void {
      phase = 'paused';
      now = 'Paused by an operator.';
    },
    ended(status: string, reason: string | null): void {
      phase = 'ended';
      now = `Ended: ${status}${reason === null ? '' : ` (${reason})`}.`;
    },
    progress: (): Omit<DeliveryProgress, 'paused'> => ({ phase, attempts, log: [...log] }),
    text: () => [`**${notificationId}**: ${now}`, '', ...log.map((line) => `- ${line}`)].join('\n'),
  };
}
