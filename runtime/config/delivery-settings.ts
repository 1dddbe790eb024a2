import { z } from 'zod';
import { port } from './setting-types';

const seconds = z
  .string()
  .regex(/^\d{1,7}(,\d{1,7}){0,29}$/, 'must be whole seconds, comma-separated, at most 30 of them')
  .transform((text) => text.split(',').map((part) => Number(part) * 1_000));

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
      'Keys that webhook secrets are sealed with: `id:base64,…`, 32 bytes each; the first one seals. Required by workers.',
    ),
  WEBHOOK_ALLOWED_CIDRS: z
    .string()
    .default('')
    .describe('Private networks that webhooks may go to, comma-separated. Development only.'),
  WEBHOOK_ALLOWED_PORTS: z
    .string()
    .default('')
    .describe('Ports besides 443 that webhooks may go to, comma-separated. Development only.'),
  WEBHOOK_HOSTS: z
    .string()
    .default('')
    .describe('Names that DNS is not asked for: `name=address,…`. Development only.'),
  WEBHOOK_CA_FILE: z
    .string()
    .optional()
    .describe(
      'Authority that webhook endpoints are trusted by besides the well-known ones, PEM. Allowed in production too.',
    ),
  DELIVERY_LADDER_SECONDS: seconds
    .optional()
    .describe(
      'Wait before each attempt of a status notification, comma-separated; fixed for a notification when its workflow starts. Without it ' +
        '0, 5 s, 1 min, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h: 11 attempts over 75.6 h, as partners were told. For tests.',
    ),
  TEST_LADDER_SECONDS: seconds
    .optional()
    .describe('The same for test notifications; without it 0, 5 s, 30 s. For tests.'),
  DELIVERIES_AT_ONCE: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000)
    .default(400)
    .describe('Most sends under way in a worker process. Under 80 an endpoint gets fewer than 16 places.'),
  WORKFLOW_TASKS_AT_ONCE: z.coerce
    .number()
    .int()
    // Pollers hold up to ten of the slots: with fewer than that left nothing would start eagerly, or be polled for.
    .min(24)
    .max(1_000)
    .default(160)
    .describe('Most workflow tasks under way in a worker process; half of them may be fast first attempts.'),
  DISPATCH_SWEEP_MS: z.coerce
    .number()
    .int()
    .min(50)
    .max(60_000)
    .default(1_000)
    .describe(
      'How often the dispatcher looks for notifications it has not heard of. For tests; leave it as it is.',
    ),
  RECONCILE_AFTER_MS: z.coerce
    .number()
    .int()
    .min(100)
    .max(86_400_000)
    .default(60_000)
    .describe(
      'How long a delivery is left alone before its row is held against Temporal. For tests; leave it as it is.',
    ),
  TASK_QUEUE: z
    .string()
    .regex(/^[\w.-]{1,100}$/)
    .default('notifications')
    .describe('Task queue of the workflows; the sends are on `<name>-sends`.'),
  WORKER_HOST: z.string().default('127.0.0.1').describe('Address of the internal listener of a worker.'),
  WORKER_PORT: port
    .default(8082)
    .describe('Port of the internal listener of a worker: health, readiness, metrics.'),
  WORKER_DEPLOYMENT: z
    .string()
    .regex(/^[\w-]{1,100}$/)
    .default('partner-finance-quote-service')
    .describe(
      'Name of the Temporal worker deployment that builds of the worker belong to; `ops deployments` reads it too.',
    ),
  WORKER_BUILD_ID: z
    .string()
    .regex(/^[\w+-][\w.+-]{0,99}$/)
    .optional()
    .describe(
      'Build of the code of this worker, another for every release. With it the worker works once `ops deployments set-current` has named it; ' +
        'without it workers have no versions.',
    ),
  WORKER_VERSIONING: z
    .enum(['auto-upgrade', 'pinned'])
    .default('auto-upgrade')
    .describe(
      'Whether deliveries under way go over to the build that becomes current, or stay with theirs to the end.',
    ),
  WORKFLOW_BUNDLE: z
    .string()
    .optional()
    .describe('Prebuilt workflow code; else it is built at the start, in about two seconds.'),
} as const;

/** Those of them that the boot log may not show. */
export const DELIVERY_SECRETS = ['WEBHOOK_KEYS'] as const;
