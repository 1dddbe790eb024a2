import { z } from 'zod';
import { DELIVERY_SECRETS, deliverySettings } from './delivery-settings';
import { retentionFault, retentionSettings } from './retention-settings';
import { TEMPORAL_SECRETS, temporalSettings } from './temporal-settings';

/** The only reader of the environment. Every setting, its default and its bound stand here. */

const port = z.coerce.number().int().min(1).max(65_535);
const milliseconds = z.coerce.number().int().min(1).max(600_000);
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== ''),
);

const settings = z.object({
  DATA_DIR: z.string().min(1).default('.data').describe('Where the embedded stack keeps its data.'),
  API_HOST: z.string().default('127.0.0.1').describe('Address of the public listener.'),
  API_PORT: port.default(8443).describe('Port of the public listener.'),
  INTERNAL_HOST: z.string().default('127.0.0.1').describe('Address of the internal listener.'),
  INTERNAL_PORT: port.default(8081).describe('Port of the internal listener: health, readiness, metrics.'),
  POSTGRES_PORT: port.default(54_329).describe('Port of the embedded Postgres.'),
  TEMPORAL_PORT: port.default(7233).describe('Port of the embedded Temporal.'),
  TEMPORAL_UI_PORT: port.default(8233).describe('Port of its web page.'),
  SHOP_PORT: port.default(8444).describe('Port of the demo shop.'),
  RECEIVER_PORT: port.default(8445).describe("Port of the demo partner's receiver."),
  TOOLS_DIR: z
    .string()
    .optional()
    .describe("Where programs built or downloaded once are kept, instead of the user's cache folder."),
  ...temporalSettings,
  DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe('Postgres to use instead of the embedded one.'),
  DATABASE_LISTEN_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe(
      'Direct way to the same Postgres for LISTEN, where DATABASE_URL leads through a connection pooler.',
    ),
  DATABASE_POOL_SIZE: z.coerce
    .number()
    .int()
    .min(2)
    .max(200)
    .default(10)
    .describe('Most connections of a process.'),
  DATABASE_TIMEOUT_MS: milliseconds
    .default(3_000)
    .describe('Longest wait for Postgres per request and statement.'),
  REDIS_URL: z
    .url({ protocol: /^rediss?$/ })
    .optional()
    .describe('Redis that API processes share the rate limit through.'),
  REDIS_TIMEOUT_MS: milliseconds
    .default(100)
    .describe('Longest wait for Redis before a call is counted in memory.'),
  RATE_LIMIT_PER_MINUTE: z.coerce
    .number()
    .int()
    .min(1)
    .max(100_000_000)
    .default(100)
    .describe('Calls per API key and minute.'),
  TLS_CERT_FILE: z.string().optional().describe('Certificate chain of the public listener, PEM.'),
  TLS_KEY_FILE: z.string().optional().describe('Its key, PEM.'),
  TRUSTED_PROXIES: list
    .default([])
    .describe('Addresses or CIDRs of proxies whose X-Forwarded-Proto counts, comma-separated.'),
  PLAIN_PORT: port.optional().describe('Port of a plain-HTTP listener that answers 400 "HTTPS is required".'),
  SHUTDOWN_GRACE_MS: milliseconds
    .default(15_000)
    .describe('Longest time to finish requests under way at a stop.'),
  MERCHANTS_IN_MEMORY: z.coerce
    .number()
    .int()
    .min(1)
    .default(20_000)
    .describe('Most merchants held in memory.'),
  ...deliverySettings,
  ...retentionSettings,
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('Least level that is logged.'),
});

/** Settings whose value may hold a password: the boot log says only whether they are set. */
const SECRET = new Set<string>([
  'DATABASE_URL',
  'DATABASE_LISTEN_URL',
  'REDIS_URL',
  ...TEMPORAL_SECRETS,
  ...DELIVERY_SECRETS,
]);

export type Config = Readonly<z.infer<typeof settings>>;

/** The environment does not fit; the message names every setting at fault. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the settings. An empty value counts as not set.
 * @throws ConfigError naming every setting at fault and what it may be.
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = settings.safeParse(given);
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
    throw new ConfigError(`settings that cannot be used:\n${faults.join('\n')}`);
  }
  const config = parsed.data;
  if ((config.TLS_CERT_FILE === undefined) !== (config.TLS_KEY_FILE === undefined)) {
    throw new ConfigError('TLS_CERT_FILE and TLS_KEY_FILE belong together: set both or neither.');
  }
  const retention = retentionFault(config);
  if (retention !== null) throw new ConfigError(retention);
  return config;
}

/** Every setting as a line for the boot log. */
export function describeConfig(config: Config): Record<string, unknown> {
  const shown = (name: string, value: unknown) => {
    if (SECRET.has(name)) return value === undefined ? 'not set' : 'set';
    return value ?? 'not set';
  };
  return Object.fromEntries(
    Object.keys(settings.shape).map((name) => [name, shown(name, config[name as keyof Config])]),
  );
}
