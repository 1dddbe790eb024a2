import { randomBytes } from 'node:crypto';

const NAMES = [
  'POSTGRES_PASSWORD',
  'REPLICATION_PASSWORD',
  'QUOTES_DB_PASSWORD',
  'QUOTES_API_DB_PASSWORD',
  'QUOTES_WORKER_DB_PASSWORD',
  'QUOTES_OPS_DB_PASSWORD',
  'TEMPORAL_DB_PASSWORD',
  'REDIS_PASSWORD',
] as const;

export type Secrets = Readonly<Record<(typeof NAMES)[number] | 'WEBHOOK_KEYS', string>>;

/** What stands in angle brackets in the files of deploy/cluster. */
export function newSecrets(): Secrets {
  const passwords = Object.fromEntries(NAMES.map((name) => [name, randomBytes(24).toString('hex')]));
  return { ...passwords, WEBHOOK_KEYS: `k1:${randomBytes(32).toString('base64')}` } as Secrets;
}
