import { Counter, Gauge, type Registry } from 'prom-client';
import type { HealthFigures } from '../db/queries/health-figures';

/** Endpoints and held notifications, for all partners together: by partner they are in `ops webhooks list`. */
export function createHealthMetrics(registry: Registry, read: () => Promise<HealthFigures>) {
  const registers = [registry];
  // The gauges of one scrape are collected side by side: they share one read.
  let reading: Promise<HealthFigures> | null = null;
  const figures = () =>
    (reading ??= read().finally(() => {
      reading = null;
    }));
  function gauge<Label extends string>(
    [name, help, ...labelNames]: readonly [name: string, help: string, ...labels: Label[]],
    show: (gauge: Gauge<Label>, figures: HealthFigures) => void,
  ): Gauge<Label> {
    return new Gauge({
      name,
      help,
      labelNames,
      registers,
      async collect() {
        show(this, await figures());
      },
    });
  }

  gauge(['pfqs_notifications_held', 'Notifications that wait for an active endpoint.'], (own, { held }) =>
    own.set(held),
  );
  gauge(
    ['pfqs_notifications_oldest_held_seconds', 'How long the oldest of them has been held.'],
    (own, { oldestHeldMs }) => own.set(oldestHeldMs / 1_000),
  );
  gauge(
    ['pfqs_notifications_expiring', 'Held notifications that expire within seven days.'],
    (own, { expiring }) => own.set(expiring),
  );
  gauge(
    ['pfqs_webhook_endpoints_disabled', 'Disabled endpoints by reason.', 'reason'],
    (own, { disabled }) => {
      for (const [reason, count] of Object.entries(disabled)) own.set({ reason }, count);
    },
  );
  gauge(
    [
      'pfqs_webhook_endpoints_failing',
      'Active endpoints that have answered nothing but failures for at least so many hours.',
      'hours',
    ],
    (own, { failing }) => {
      for (const { hours, count } of failing) own.set({ hours }, count);
    },
  );
  return {
    expired: new Counter({
      name: 'pfqs_notifications_expired_total',
      help: 'Notifications given up after 30 days without an endpoint.',
      registers,
    }),
    released: new Counter({
      name: 'pfqs_notifications_released_total',
      help: 'Held notifications that were sent after all.',
      registers,
    }),
  };
}
