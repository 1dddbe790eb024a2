import { Counter, type Registry } from 'prom-client';
import type { HealthFigures } from '../../db/figures';
import { by, sharedGauges } from './shared-gauges';

/**
 * Endpoints and held notifications, for all partners together: by partner they are in `ops webhooks list`. An endpoint that the service
 * disabled is named by its id, which is no partner's name.
 */
export function createHealthMetrics(registry: Registry, read: () => Promise<HealthFigures>) {
  const counter = (name: string, help: string) => new Counter({ name, help, registers: [registry] });
  const gauge = sharedGauges(registry, read);

  gauge('pfqs_notifications_held', 'Notifications that wait for an active endpoint.', ({ held }) => held);
  gauge(
    'pfqs_notifications_oldest_held_seconds',
    'How long the oldest of them has been held.',
    ({ oldestHeldMs }) => oldestHeldMs / 1_000,
  );
  gauge(
    'pfqs_notifications_expiring',
    'Held notifications that expire within seven days.',
    ({ expiring }) => expiring,
  );
  gauge(
    'pfqs_webhook_endpoints_disabled',
    'Disabled endpoints by reason.',
    ({ disabled }) => by('reason', disabled),
    'reason',
  );
  gauge(
    'pfqs_webhook_endpoint_given_up',
    'Each endpoint that the service disabled, by its id and the reason: 1 until it is enabled, replaced, or disabled by an operator.',
    ({ givenUp }) => givenUp.map((one) => [one, 1] as const),
    'endpoint',
    'reason',
  );
  gauge(
    'pfqs_webhook_endpoints_failing',
    'Active endpoints that have answered nothing but failures for at least so many hours.',
    ({ failing }) => failing.map(({ hours, count }) => [{ hours }, count] as const),
    'hours',
  );
  gauge(
    'pfqs_partners_failing',
    'Partners whose live endpoint has failed for an hour while events of applications wait for their next attempt.',
    ({ partnersFailing }) => partnersFailing,
  );
  return {
    expired: counter(
      'pfqs_notifications_expired_total',
      'Notifications given up after 30 days without an endpoint.',
    ),
    released: counter('pfqs_notifications_released_total', 'Held notifications that were sent after all.'),
  };
}
