import type { Registry } from 'prom-client';
import { LIMIT_SHARES, type DeliveryFigures } from '../../db/notifications/figures';
import { sharedGauges } from './shared-gauges';

/** What is owed and what was sent, read from Postgres at each scrape: every worker shows the same. */
export function createFigureMetrics(registry: Registry, read: () => Promise<DeliveryFigures>): void {
  const gauge = sharedGauges(registry, read);
  gauge(
    ['pfqs_notifications_undelivered', 'Notifications that have not ended, by state.', 'state'],
    (own, { undelivered }) => {
      for (const [state, count] of Object.entries(undelivered)) own.set({ state }, count);
    },
  );
  gauge(
    ['pfqs_notifications_oldest_paused_seconds', 'How long the oldest pause of a delivery has lasted.'],
    (own, { oldestPausedMs }) => own.set(oldestPausedMs / 1_000),
  );
  gauge(
    [
      'pfqs_notifications_this_month',
      'Notifications counted in this UTC month, by environment and result: delivered or failed.',
      'environment',
      'result',
    ],
    (own, { month }) => {
      for (const { environment, delivered, failed } of month) {
        own.set({ environment, result: 'delivered' }, delivered);
        own.set({ environment, result: 'failed' }, failed);
      }
    },
  );
  gauge(
    [
      'pfqs_test_limit_partners',
      'Partners that have used at least so many per cent of the test notifications of this UTC month.',
      'environment',
      'used',
    ],
    (own, { month }) => {
      for (const { environment, limitUsed } of month)
        LIMIT_SHARES.forEach((used, at) => own.set({ environment, used }, limitUsed[at] ?? 0));
    },
  );
}
