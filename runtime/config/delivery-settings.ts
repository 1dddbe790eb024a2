import { z } from 'zod';
import { port } from './setting-types';

const ladder = z
  .string()
  .regex(/^\d{1,7}(,\d{1,7}){0,29}$/, 'must be whole seconds, comma-separated, at most 30 of them')
  .transform((text) => text.split(',').map((part) => Number(part) * 1_000));

const localTargets = z.string().transform((text, check) =>
  text === ''
    ? []
    : text.split(',').map((pair) => {
        const [, name = '', port = ''] = /^([a-z0-9.-]+):(\d{1,5})$/i.exec(pair.trim()) ?? [];
        if (Number(port) < 1 || Number(port) > 65_535)
          check.addIssue(`must be name:port, comma-separated, such as localhost:8450; not ${pair}`);
        return { name: name.toLowerCase(), port: Number(port) };
      }),
);

/** Settings of webhooks and their delivery. */
export const deliverySettings = {
  ENVIRONMENT: z
    .enum(['production', 'development'])
    .default('production')
    .describe('`production` refuses the settings that are for development only.'),
  WEBHOOK_KEYS: z
    .string()
    .optional()
    .describe(
      'Keys that webhook secrets and private keys are sealed with: `id:base64,…`, 32 bytes each; the first one seals. Required by workers.',
    ),
  WEBHOOK_LOCAL_TARGETS: localTargets
    .default([])
    .describe(
      'Receivers on this machine that webhooks may go to: `localhost:8450,…`. Their names mean 127.0.0.1. Development only.',
    ),
  WEBHOOK_CA_FILE: z
    .string()
    .optional()
    .describe(
      'Authority that webhook endpoints are trusted by besides the well-known ones, PEM. Allowed in production too.',
    ),
  DELIVERY_LADDER_SECONDS: ladder
    .optional()
    .describe(
      'Wait before each attempt of a status notification, comma-separated; fixed for a notification when its workflow starts. Without it ' +
        '0, 5 s, 1 min, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h: 11 attempts over 75.6 h, as partners were told.',
    ),
  WORKER_PORT: port
    .default(8082)
    .describe('Port of the internal listener of a worker: health, readiness, metrics.'),
  WORKER_BUILD_ID: z
    .string()
    .regex(/^[\w+-][\w.+-]{0,99}$/)
    .optional()
    .describe(
      'Build of the code of this worker, another for every release. With it the worker works once `ops deployments set-current` has named it; ' +
        'without it workers have no versions.',
    ),
} as const;
