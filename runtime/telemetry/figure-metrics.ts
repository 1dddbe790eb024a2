import type { Registry } from 'prom-client';
import { LIMIT_SHARES, type DeliveryFigures } from '../../db/figures';
import { by, sharedGauges } from './shared-gauges';

/** What is owed and what was sent, read from Postgres at each scrape: every worker shows the same. */
export function createFigureMetrics(registry: Registry, read: () => Promise<DeliveryFigures>): void {
  const gauge = sharedGauges(registry, read);
  gauge(
    'pfqs_notifications_undelivered',
    'Notifications that have not ended, by state.',
    ({ undelivered }) => by('state', undelivered),
    'state',
  );
  gauge(
    'pfqs_notifications_oldest_paused_seconds',
    'How long the oldest pause of a delivery has lasted.',
    ({ oldestPausedMs }) => oldestPausedMs / 1_000,
  );
  gauge(
    'pfqs_notifications_this_month',
    'Notifications counted in this UTC month, by environment and result: delivered or failed.',
    ({ month }) =>
      month.flatMap(({ environment, delivered, failed }) => [
        [{ environment, result: 'delivered' }, delivered] as const,
        [{ environment, result: 'failed' }, failed] as const,
      ]),
    'environment',
    'result',
  );
  gauge(
    'pfqs_test_limit_partners',
    'Partners that have used at least so many per cent of the test notifications of this UTC month.',
    ({ month }) =>
      month.flatMap(({ environment, limitUsed }) =>
        LIMIT_SHARES.map((used, at) => [{ environment, used }, limitUsed[at] ?? 0] as const),
      ),
    'environment',
    'used',
  );
}
