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
import { describeOutcome, describeWait, seconds, utc } from '../domain/delivery-outcome';
import type { DeliveryOutcome, Next, Over, Wait } from '../domain/delivery-outcome';
import { SEARCH_ATTRIBUTE } from '../domain/notification-states';
import { sendsQueueOf, WAKE_SIGNAL } from './names';

/** Everything else stays in Postgres, where each step reads it. */
interface DeliverNotificationInput {
  readonly notificationId: string;
  readonly generation: number;
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
}

/** An operator has changed the row, which is to be read now. */
const wakeSignal = defineSignal(WAKE_SIGNAL);
export const progressQuery = defineQuery<DeliveryProgress>('progress');

/**
 * A worker takes up a timer within milliseconds: one that it takes up so much later has met an outage of
 * ours.
 */
const OUTAGE_MS = 10_000;

const statusKey = defineSearchAttributeKey(SEARCH_ATTRIBUTE.status, 'KEYWORD');

/**
 * Delivers one notification: asks what its row wants, waits, and asks again. The row decides when an attempt
 * is made, and when the delivery is over (open.sql, record.sql). A partner's failure is a result; Temporal
 * retries only after our own faults. A cancellation by Temporal ends the delivery between attempts, after an
 * attempt under way was recorded.
 * @throws ApplicationFailure when the delivery failed; its type is the reason, such as `exhausted`
 */
export async function deliverNotification(input: DeliverNotificationInput): Promise<DeliveryEnd> {
  const { notificationId, generation } = input;
  // A build of before 0.1.0 began it. The reconciler starts the next generation, at the step of the row.
  if ('queue' in input)
    throw ApplicationFailure.nonRetryable('another build began this delivery', 'other_build');
  const page = createPage(notificationId);
  const activities = createActivities();
  const ref = { notificationId, generation };
  const wake = { given: false };
  setHandler(wakeSignal, () => void (wake.given = true));
  setHandler(progressQuery, page.progress);

  /** Makes an attempt if one is due. */
  async function ask(round: number, first: boolean): Promise<Next> {
    const attempt = `attempt ${page.asks()}`;
    const atOnce = first
      ? await activities.attemptAtOnce
          .executeWithOptions({ summary: `${attempt}: at once, if its endpoint is fast` }, [ref])
          .catch(() => null)
      : null;
    const summary = `${attempt}: sign and POST`;
    const sent =
      atOnce ?? (await activities.sendAttempt.executeWithOptions({ summary }, [{ ...ref, round }]));
    if (sent.kind !== 'sent') return sent;
    const { attemptNumber, outcome, address, next } = sent;
    page.attempted(attemptNumber, outcome);
    if (next !== null) return next;
    const result = { notificationId, attemptNumber, outcome, address };
    const about = `attempt ${attemptNumber} ${describeOutcome(outcome)}`;
    return activities.recordResult.executeWithOptions({ summary: about }, [result]);
  }

  try {
    for (let [round, first] = [1, true]; ; first = false) {
      wake.given = false;
      const next = await CancellationScope.nonCancellable(() => ask(round, first));
      const cancelled = CancellationScope.current().consideredCancelled;
      if (next.kind === 'over') {
        // The row is queued as its next generation already, which an order to cancel, given meanwhile, is for.
        const goesOn = next.status === 'paused' || next.status === 'queued';
        if (!goesOn || !cancelled) return page.end(next);
        ref.generation += 1;
      }
      if (cancelled) throw new CancelledFailure('cancelled');
      if (next.kind !== 'wait') continue;
      round = next.because === 'busy' || next.because === 'outage' ? round + 1 : 1;
      const summary = page.waits(next);
      const dueMs = Date.now() + (next.waitMs ?? 0);
      if (next.waitMs === null) await condition(() => wake.given);
      else if (!(await condition(() => wake.given, next.waitMs, { summary }))) page.late(Date.now() - dueMs);
    }
  } catch (error) {
    if (isCancellation(error)) {
      const end = { state: 'cancelled', reason: 'operator' } as const;
      await CancellationScope.nonCancellable(() => activities.endDelivery({ ...ref, end }));
      page.closed('cancelled', 'operator');
    }
    throw error;
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
  const { attemptAtOnce } = proxyLocalActivities<LocalActivities>({
    startToCloseTimeout: '40 seconds',
    retry: { maximumAttempts: 1 },
  });
  return { sendAttempt, recordResult, endDelivery, attemptAtOnce };
}

/**
 * What Temporal's page shows of a delivery: current details, the attribute `NotificationStatus`, and the end.
 * Moments are in UTC.
 */
function createPage(notificationId: string) {
  const log: string[] = [];
  let attempts = 0;
  let phase: DeliveryProgress['phase'] = 'sending';
  let status = 'sending';
  let pausedMs: number | null = null;
  /** The attempt that was just made, with its outcome. */
  let made = '';

  function show(now: string, wanted: string): void {
    const lines = log.map((line) => `- ${line}`);
    setCurrentDetails([`**${notificationId}**: ${now}.`, '', ...lines].join('\n'));
    if (wanted !== status) upsertSearchAttributes([{ key: statusKey, value: wanted }]);
    status = wanted;
  }
  const note = (line: string, atMs = Date.now()) => void log.push(`${utc(atMs)} ${line}`);
  function closed(end: string, reason: string | null): void {
    phase = 'ended';
    // Completed says it, and saves an upsert for each delivery.
    show(
      `Ended ${utc(Date.now())}: ${end}${reason === null ? '' : ` (${reason})`}`,
      end === 'delivered' ? status : end,
    );
  }

  return {
    /** @returns the number of the attempt that may begin now */
    asks(): number {
      phase = 'sending';
      made = '';
      show(`Attempt ${attempts + 1} is under way`, status);
      return attempts + 1;
    },
    progress: (): DeliveryProgress => ({ phase, attempts, log: [...log] }),
    attempted(attemptNumber: number, outcome: DeliveryOutcome): void {
      attempts = attemptNumber;
      made = `attempt ${attemptNumber} ${describeOutcome(outcome)}`;
      note(made);
      show(`Attempt ${attemptNumber} was made`, status);
    },
    /** @returns the summary of the wait */
    waits(next: Wait): string {
      attempts = Math.max(attempts, next.attempts);
      const paused = next.because === 'paused';
      if (paused && next.sinceMs !== null && next.sinceMs !== pausedMs)
        note('paused by an operator', (pausedMs = next.sinceMs));
      if (pausedMs !== null && !paused) {
        note('resumed');
        pausedMs = null;
      }
      phase = paused ? 'paused' : 'waiting';
      const wait = describeWait({ ...next, attempts });
      show(wait, paused ? 'paused' : attempts > 0 ? 'retrying' : 'sending');
      return made === '' ? wait : `${made}. ${wait}`;
    },
    late(lateMs: number): void {
      if (lateMs <= OUTAGE_MS) return;
      note(`attempt ${attempts + 1} ${seconds(lateMs)} late: no worker took it up, or Temporal was away`);
    },
    closed,
    /** @throws ApplicationFailure for a failed delivery */
    end({ status: end, reason }: Over): DeliveryEnd {
      closed(end, reason);
      if (end === 'failed')
        throw ApplicationFailure.create({
          type: reason ?? 'failed',
          message: log.at(-1) ?? 'not sent',
          nonRetryable: true,
          // This is the partner's failure, and no error in the worker's log.
          category: ApplicationFailureCategory.BENIGN,
        });
      const known = end === 'delivered' || end === 'held' || end === 'paused' || end === 'queued';
      return { status: known ? end : 'superseded', attempts };
    },
  };
}
