import { setTimeout as sleep } from 'node:timers/promises';
import { Option, type Command } from 'commander';
import { testLenders, type TestLender, testEvent } from '../contracts/webhook-event';
import type { Db } from '../db/postgres/connect';
import { readProgress, type NotificationProgress } from '../db/notifications/notification';
import { insertTestNotification } from '../db/notifications/create';
import { isOpen, TEST_EVENT_TYPE } from '../domain/notification-states';
import { newEventId, newNotificationId, newRequestId } from '../runtime/ids';
import { environmentOption } from './arguments';
import { changeAndLog, handle, type OpsDeps, type Owner } from './call';
import { idOf } from './ids';

/** As long as the API waits. */
const WAIT_MS = 10_000;
const POLL_MS = 200;

export function addWebhookTest(webhooks: Command, deps: OpsDeps): void {
  const test = webhooks
    .command('test')
    .description(
      'Send a test notification, as POST /v1/notifications/test does. It counts against the limit.',
    )
    .requiredOption('--partner <partner>', 'whom to', idOf('partner'))
    .addOption(environmentOption('which endpoint to').makeOptionMandatory())
    .addOption(new Option('--lender <lender>', 'whose sample reference to carry').choices([...testLenders]))
    .option('--wait', 'wait up to 10 s for the first attempt; exit code 1 unless it delivered');
  handle<Owner & { lender?: TestLender; wait?: true }>(test, deps, async (call) => {
    const { partner: partnerId, environment, lender = null } = call.options;
    const at = await deps.now(call.db);
    const [notificationId, eventId] = [newNotificationId(at), newEventId(at)];
    await changeAndLog(call, 'webhooks.test', async (tx, log) => {
      await insertTestNotification(tx, {
        notificationId,
        eventId,
        eventType: TEST_EVENT_TYPE,
        partnerId,
        environment,
        body: JSON.stringify(testEvent({ eventId, environment, createdAt: at, lender })),
        requestId: newRequestId(),
      });
      await log(notificationId, { partner_id: partnerId, environment });
    });
    const view = { notification_id: notificationId, event_id: eventId, partner_id: partnerId, environment };
    if (!call.options.wait) {
      return { json: view, text: `Stored test notification ${notificationId}. ${hintOf(notificationId)}` };
    }
    const progress = await firstAttempt(call.db, notificationId);
    const { httpStatus = null, durationMs = null } = progress?.attempt ?? {};
    if (progress?.state !== 'delivered') throw notDelivered(notificationId, progress);
    return {
      json: { ...view, status: 'delivered', attempt: { http_status: httpStatus, duration_ms: durationMs } },
      text: `Delivered test notification ${notificationId}: ${httpStatus} in ${durationMs} ms.`,
    };
  });
}

const hintOf = (notificationId: string) => `See ops notifications show ${notificationId}.`;

async function firstAttempt(db: Db, notificationId: string): Promise<NotificationProgress | null> {
  const endsAtMs = performance.now() + WAIT_MS;
  for (;;) {
    const progress = await readProgress(db, notificationId);
    const waits = progress !== null && isOpen(progress.state) && progress.attempt === null;
    if (!waits || performance.now() >= endsAtMs) return progress;
    await sleep(POLL_MS);
  }
}

function notDelivered(notificationId: string, progress: NotificationProgress | null): Error {
  const { state, attempt } = progress ?? { state: 'gone', attempt: null };
  const answer =
    attempt === null
      ? `no attempt has ended within ${WAIT_MS / 1_000} s: deliveries to the partner are paused, Temporal or the workers are away, their build is not current, or WEBHOOK_KEYS lacks its key: see ops status and their log.`
      : `the endpoint ${attempt.httpStatus === null ? `gave no answer (${attempt.failure})` : `answered ${attempt.httpStatus}`}.`;
  const hint = hintOf(notificationId);
  return new Error(`Test notification ${notificationId} is not delivered (${state}): ${answer} ${hint}`);
}
