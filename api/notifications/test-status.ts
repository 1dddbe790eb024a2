import type { TestNotificationBody } from '../../contracts/notifications';
import type { NotificationProgress } from '../../db/notifications/create';

/** What a partner is told of where its test stands; null when that is not known. */
export function testStatus(progress: NotificationProgress | null): TestNotificationBody['data']['status'] {
  switch (progress?.state) {
    case undefined:
      return 'queued';
    case 'delivered':
      return 'delivered';
    case 'queued':
    case 'started':
      return progress?.attempt ? 'retrying' : 'queued';
    case 'held':
    case 'failed':
    case 'cancelled':
    case 'expired':
      return 'failed';
  }
}

/** What a partner is told of the reason that a notification ended with. What it cannot know of is a fault of ours. */
export function shownReason(endReason: string | null | undefined, known: readonly string[]): string {
  if (endReason === 'operator' || endReason === 'workflow_cancelled') return 'cancelled';
  if (endReason?.startsWith('endpoint_')) return 'webhook_not_registered';
  return known.find((reason) => reason === endReason) ?? 'internal_error';
}
