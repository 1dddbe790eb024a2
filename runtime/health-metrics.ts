import { Counter, Gauge, type Registry } from 'prom-client';
import type { HealthFigures } from '../db/queries/health-figures';

/** Endpoints and held notifications, for all partners together: by partner they are in `ops webhooks list`. */
export function createHealthMetrics(registry: Registry, read: () => Promise<HealthFigures>) {
  const registers = [registry];
  const gauge = (name: string, help: string) => new Gauge({ name, help, registers });
  const oldest = gauge(
    'pfqs_notifications_oldest_held_seconds',
    'How long the oldest of them has been held.',
  );
  const expiring = gauge('pfqs_notifications_expiring', 'Held notifications that expire within seven days.');
  const disabled = new Gauge({
    name: 'pfqs_webhook_endpoints_disabled',
    help: 'Disabled endpoints by reason.',
    labelNames: ['reason'] as const,
    registers,
  });
  const failing = new Gauge({
    name: 'pfqs_webhook_endpoints_failing',
    help: 'Active endpoints that have answered nothing but failures for at least so many hours.',
    labelNames: ['hours'] as const,
    registers,
  });
  // One read sets all five.
  const held = new Gauge({
    name: 'pfqs_notifications_held',
    help: 'Notifications that wait for an active endpoint.',
    registers,
    async collect() {
      const figures = await read();
      this.set(figures.held);
      oldest.set(figures.oldestHeldMs / 1_000);
      expiring.set(figures.expiring);
      for (const [reason, count] of Object.entries(figures.disabled)) disabled.set({ reason }, count);
      for (const { hours, count } of figures.failing) failing.set({ hours }, count);
    },
  });
  return {
    held,
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
