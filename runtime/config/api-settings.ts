import { z } from 'zod';
import { addressOrRange, list, port, whole } from './setting-types';

/** Settings of an API process. */
export const apiSettings = {
  API_HOST: z.string().default('127.0.0.1').describe('Address of the public listener.'),
  API_PORT: port.default(8443).describe('Port of the public listener.'),
  INTERNAL_HOST: z
    .string()
    .default('127.0.0.1')
    .describe('Address of the internal listener, of a worker too.'),
  INTERNAL_PORT: port
    .default(8081)
    .describe('Port of the internal listener: credit applications, health, readiness, metrics.'),
  RATE_LIMIT_PER_MINUTE: whole(1, 100_000_000).default(100).describe('Calls per API key and minute.'),
  KEYLESS_CALLS_PER_MINUTE: whole(1, 100_000_000)
    .default(300)
    .describe(
      'Calls without a valid key per source address (IPv6: per /64) and minute, in each API process; without a valid service key as many, counted apart. Those with one are never refused for their address.',
    ),
  TLS_CERT_FILE: z
    .string()
    .optional()
    .describe('Certificate chain of the public listener, PEM, leaf first. Belongs with `TLS_KEY_FILE`.'),
  TLS_KEY_FILE: z.string().optional().describe('Its key, PEM. SIGHUP has both read again.'),
  TRUSTED_PROXIES: list
    .pipe(z.array(addressOrRange))
    .default([])
    .describe('Addresses or CIDRs of proxies whose `X-Forwarded-Proto` counts, comma-separated.'),
  SHUTDOWN_DELAY_MS: whole(0, 600_000)
    .default(0)
    .describe(
      'How long a stopping process serves on as before while `/ready` says 503: time for a proxy to stop sending. Before the grace.',
    ),
  LENDER_EVENT_WAIT_SECONDS: whole(1, 86_400)
    .default(600)
    .describe(
      "How long a lender's event that comes before the steps it depends on waits for them, in seconds. Then a worker applies it without them.",
    ),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least level that is logged, by workers too.'),
} as const;
