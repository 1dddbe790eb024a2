import { z } from 'zod';
import { readServerTls } from '../../db/postgres/driver/server-tls';
import { parsedUrl } from '../../domain/parsed-url';
import { whole } from './setting-types';

const postgresUrl = z.url({ protocol: /^postgres(ql)?$/ }).superRefine((url, context) => {
  if (parsedUrl(url) === undefined) return;
  try {
    readServerTls(url);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
});

/** Settings of Postgres and Redis. */
export const storeSettings = {
  DATABASE_URL: postgresUrl
    .optional()
    .describe(
      'Postgres, `postgres://…`. Required, but for `npm start`, which brings one of its own. TLS: `?sslmode=verify-full&sslrootcert=/path/ca.pem`.',
    ),
  DATABASE_LISTEN_URL: postgresUrl
    .optional()
    .describe(
      'Direct way to the same Postgres for LISTEN, where `DATABASE_URL` leads through a connection pooler.',
    ),
  DATABASE_POOL_SIZE: whole(2, 200)
    .default(10)
    .describe(
      'Most pooled connections of a process; the inserts of quotes and the pages of partners have two more each, the change feed one.',
    ),
  DATABASE_TIMEOUT_MS: whole(1, 600_000)
    .default(3_000)
    .describe('Longest wait for Postgres per look-up or insert, and longest statement.'),
  REDIS_URL: z
    .url({ protocol: /^rediss?$/ })
    .optional()
    .describe('Redis that API processes share the rate limit through, `redis://…` or `rediss://…`.'),
} as const;

export const STORE_SECRETS = ['DATABASE_URL', 'DATABASE_LISTEN_URL', 'REDIS_URL'] as const;
