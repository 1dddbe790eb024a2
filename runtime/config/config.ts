import { SECRET, settings, type Config } from './settings';
import type { RetentionDays } from '../../domain/retention';
import type { SenderOptions } from '../../outbound/sender';

export type { Config };

/** Settings that cannot be used. The message names each of them. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the settings. An empty value counts as not set. Spaces and line breaks around one are left out, as a Secret that
 * was made with `echo` ends with one, and then quotes around it: `docker --env-file` and `kubectl --from-env-file` leave them.
 * @throws ConfigError naming every setting at fault and what it may be
 */
export function readConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const bare = (value = '') =>
    value
      .trim()
      .replace(/^(["'])(.*)\1$/s, '$2')
      .trim();
  const values = Object.entries(environment).map(([name, value]) => [name, bare(value)] as const);
  const given = Object.fromEntries(values.filter(([, value]) => value !== ''));
  const parsed = settings.safeParse(given);
  if (!parsed.success) {
    const faults = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
    throw new ConfigError(`settings that cannot be used:\n${faults.join('\n')}`);
  }
  const config = parsed.data;
  if ((config.TLS_CERT_FILE === undefined) !== (config.TLS_KEY_FILE === undefined))
    throw new ConfigError('TLS_CERT_FILE and TLS_KEY_FILE belong together: set both or neither.');
  const { payloads, attempts, notifications } = retentionDays(config);
  if (notifications < Math.max(payloads, attempts))
    throw new ConfigError(
      'RETENTION_NOTIFICATIONS_DAYS must not be less than RETENTION_ATTEMPTS_DAYS or RETENTION_PAYLOADS_DAYS.',
    );
  return { ...config, WORKER_BUILD_ID: config.WORKER_BUILD_ID ?? config.TEMPORAL_WORKER_BUILD_ID };
}

/** What is nearly the name of a setting, in sentences: it changes nothing, and is most likely a slip. Values are left out. */
export function misspelt(environment: NodeJS.ProcessEnv = process.env): string[] {
  const names = Object.keys(settings.shape);
  const unknown = Object.keys(environment).filter((given) => !names.includes(given));
  return unknown.flatMap((given) => {
    const meant = names.find((name) => isWithin(name.length < 16 ? 1 : 2, given, name));
    return meant === undefined ? [] : [`${given} is no setting and changes nothing: is ${meant} meant?`];
  });
}

/** Whether so many letters, left out, added, changed or swapped, make one text the other. */
function isWithin(slips: number, one: string, other: string): boolean {
  let at = 0;
  while (at < one.length && one[at] === other[at]) at += 1;
  const [a, b] = [one.slice(at), other.slice(at)];
  if (a === b) return true;
  if (slips === 0) return false;
  const rest = [
    [a.slice(1), b],
    [a, b.slice(1)],
    [a.slice(1), b.slice(1)],
  ] as const;
  const swapped = a[0] === b[1] && a[1] === b[0] ? [[a.slice(2), b.slice(2)] as const] : [];
  return [...rest, ...swapped].some(([left, right]) => isWithin(slips - 1, left, right));
}

export function describeConfig(config: Config): Record<string, unknown> {
  const shown = (name: string, value: unknown) =>
    SECRET.has(name) ? (value === undefined ? 'not set' : 'set') : (value ?? null);
  return Object.fromEntries(
    Object.keys(settings.shape).map((name) => [name, shown(name, config[name as keyof Config])]),
  );
}

export const retentionDays = (config: Config): RetentionDays => ({
  payloads: config.RETENTION_PAYLOADS_DAYS,
  attempts: config.RETENTION_ATTEMPTS_DAYS,
  notifications: config.RETENTION_NOTIFICATIONS_DAYS,
  quotes: config.RETENTION_QUOTES_DAYS,
});

/**
 * Where webhooks may go: public addresses at port 443; in development also the named receivers.
 * @throws ConfigError for named receivers in production
 */
export function targetRules(
  config: Pick<Config, 'ENVIRONMENT' | 'WEBHOOK_LOCAL_TARGETS'>,
): Required<Pick<SenderOptions, 'allowedCidrs' | 'allowedPorts' | 'hosts'>> {
  const { ENVIRONMENT, WEBHOOK_LOCAL_TARGETS: targets } = config;
  if (ENVIRONMENT === 'production' && targets.length > 0)
    throw new ConfigError('WEBHOOK_LOCAL_TARGETS cannot be used in production.');
  return {
    allowedCidrs: targets.length === 0 ? [] : ['127.0.0.1/32'],
    allowedPorts: targets.map(({ port }) => port),
    hosts: new Map(targets.map(({ name }) => [name, ['127.0.0.1']])),
  };
}

/** Accounts of a machine, an image or a team, which name no person. */
const SHARED = new Set(
  `admin administrator app apps azureuser bin centos ci daemon debian deploy deployer dev developer docker ec2-user fedora git guest jenkins
  nobody node opc operator operators ops pi postgres quotes root runner service services support sys system sysadmin ubuntu user
  vagrant www-data`.split(/\s+/),
);
const NUMBER = /^(?:uid )?\d+$/;

/**
 * Whom the change log names: OPS_ACTOR, else the login.
 * @throws ConfigError for a shared account in production, but for the embedded stack
 */
export function opsActor(
  config: Pick<Config, 'OPS_ACTOR' | 'ENVIRONMENT' | 'DATABASE_URL'>,
  loginName: string,
): string {
  const actor = config.OPS_ACTOR ?? loginName;
  const production = config.ENVIRONMENT === 'production' && config.DATABASE_URL !== undefined;
  if (production && (SHARED.has(actor.toLowerCase()) || NUMBER.test(actor)))
    throw new ConfigError(
      `"${actor}" is an account that may be anybody's, and the change log names who makes a change: ` +
        'set OPS_ACTOR to your own name, such as OPS_ACTOR=jane.doe.',
    );
  return actor;
}
