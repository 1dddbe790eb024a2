import { z } from 'zod';
import { readServerTls } from '../../db/postgres/driver/server-tls';
import { readServers } from '../../db/postgres/driver/servers';
import { whole } from './setting-types';

/** Several servers have no form that a URL may have, so it is looked at with the first. */
const postgresUrl = z.string().superRefine((text, context) => {
  try {
    const { url } = readServers(text);
    if (!/^postgres(ql)?:$/.test(new URL(url).protocol)) throw new Error('it begins with postgres://');
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
      'Postgres, `postgres://…`. Required, but for `npm start`, which brings one of its own. TLS: `?sslmode=verify-full&sslrootcert=/path/ca.pem`. ' +
        'Several servers, of which one leads: `postgres://user:password@a,b/quotes?target_session_attrs=read-write`.',
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
