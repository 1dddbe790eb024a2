import { X509Certificate } from 'node:crypto';
import { Gauge, type Registry } from 'prom-client';
import type { DatabaseFigures } from '../../db/figures';
import type { TemporalTarget } from '../temporal/temporal-target';
import { sharedGauges } from './shared-gauges';

/** What must not run out unnoticed: months in the database, room for its log, the certificate for Temporal. */
export function createSupplyMetrics(
  registry: Registry,
  read: () => Promise<DatabaseFigures>,
  temporal: TemporalTarget,
): void {
  const gauge = sharedGauges(registry, read);
  gauge(
    'pfqs_partition_months_ahead',
    'Months after the present one that every table has a partition for.',
    ({ monthsAhead }) => monthsAhead,
  );
  gauge(
    'pfqs_archive_failing_seconds',
    'How long Postgres has not been able to archive its write-ahead log; 0: it can, or has no archive.',
    ({ archiveFailingMs }) => archiveFailingMs / 1_000,
  );
  const certificate = new Gauge({
    name: 'pfqs_temporal_certificate_expires_timestamp_seconds',
    help: 'When the client certificate ends that this process started with; NaN without one.',
    registers: [registry],
  });
  certificate.set(endOf(temporal.connection.tls) / 1_000);
}

/** Unix milliseconds. */
function endOf(tls: TemporalTarget['connection']['tls']): number {
  const pair = typeof tls === 'object' && tls !== null ? tls.clientCertPair : undefined;
  return pair === undefined ? Number.NaN : new Date(new X509Certificate(pair.crt).validTo).getTime();
}
