import { z } from 'zod';
import { apiSettings } from './api-settings';
import { deliverySettings } from './delivery-settings';
import { opsSettings } from './ops-settings';
import { retentionFault, retentionSettings } from './retention-settings';
import { stackSettings } from './stack-settings';
import { storeSettings } from './store-settings';
import { traceSettings } from './trace-settings';
import { temporalSettings } from './temporal-settings';

/** The only reader of the environment. Every setting, its default and its bounds stand in the groups below. */

export const SETTING_GROUPS = {
  'API processes': apiSettings,
  'Postgres and Redis': storeSettings,
  'Workers and webhooks': deliverySettings,
  Temporal: temporalSettings,
  Traces: traceSettings,
  'How long data is kept': retentionSettings,
  'The command line': opsSettings,
  'The embedded stack': stackSettings,
} as const;

const settings = z.object({
  ...apiSettings,
  ...storeSettings,
  ...deliverySettings,
  ...temporalSettings,
  ...traceSettings,
  ...retentionSettings,
  ...opsSettings,
  ...stackSettings,
});

/** Settings whose value may hold a password: the boot log says only whether they are set. */
const SECRET = new Set([
  'DATABASE_URL',
  'DATABASE_LISTEN_URL',
  'REDIS_URL',
  'WEBHOOK_KEYS',
  'TEMPORAL_API_KEY',
  'OTEL_EXPORTER_OTLP_ENDPOINT',
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
  const shown = (name: string, value: unknown) =>
    SECRET.has(name) && value !== undefined ? 'set' : (value ?? 'not set');
  return Object.fromEntries(
    Object.keys(settings.shape).map((name) => [name, shown(name, config[name as keyof Config])]),
  );
}
