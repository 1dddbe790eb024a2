import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseKeyRing, type KeyRing } from '../db/endpoints/key-ring';
import type { NotificationRef } from '../db/notifications/notification';
import { parsedUrl, type WebhookUrlCheck } from '../domain/webhook';
import { createResolver } from '../outbound/names';
import { checkRegistrationTarget } from '../outbound/sender';
import { ConfigError, opsActor, targetRules, type Config } from '../runtime/config/config';
import { externalTemporal, temporalTarget, type TemporalTarget } from '../runtime/temporal/temporal-target';
import { deliveryStoryUrl } from '../workflows/names';

type StackFile = Partial<
  Record<'databaseUrl' | 'temporalAddress' | 'temporalUiUrl' | 'receiverUrl', unknown>
>;

export type OpsOptions = ReturnType<typeof opsOptions>;

/** What `ops` needs, from the settings, else the embedded stack; each part reads anew, so that a command fails only for its own. */
export function opsOptions(readSettings: () => Config) {
  const temporal = (): TemporalTarget => {
    const config = readSettings();
    const { temporalAddress: address } = stackFile(config);
    const target = temporalTarget(config);
    if (externalTemporal(config) !== undefined || typeof address !== 'string') return target;
    return { ...target, connection: { address } };
  };
  return {
    /** @throws ConfigError when no database is known. */
    databaseUrl(): string {
      const config = readSettings();
      if (config.DATABASE_URL !== undefined) return config.DATABASE_URL;
      const { databaseUrl } = stackFile(config);
      if (typeof databaseUrl === 'string') return databaseUrl;
      const looked = join(resolve(config.DATA_DIR), 'stack.json');
      throw new ConfigError(
        `no database: set DATABASE_URL, or start the embedded stack first (npm start; looked for ${looked}).`,
      );
    },
    /** @throws ConfigError when no keys are known, KeyRingError when they cannot be used. */
    keyRing(): KeyRing {
      const config = readSettings();
      if (config.WEBHOOK_KEYS !== undefined) return parseKeyRing(config.WEBHOOK_KEYS);
      const file = join(resolve(config.DATA_DIR), 'webhook-keys');
      // Keys that the database's secrets were not sealed with would lock its worker out of them.
      if (config.DATABASE_URL === undefined && existsSync(file))
        return parseKeyRing(readFileSync(file, 'utf8').trim());
      throw new ConfigError(
        config.DATABASE_URL === undefined
          ? `no webhook keys: set WEBHOOK_KEYS, or start the embedded stack first (npm start; looked for ${file}).`
          : 'no webhook keys: with DATABASE_URL set, WEBHOOK_KEYS must be what its workers have.',
      );
    },
    temporal,
    deployment: () => readSettings().TEMPORAL_DEPLOYMENT_NAME,
    actor: (loginName: string) => opsActor(readSettings(), loginName),
    storyUrl(delivery: NotificationRef): string | null {
      const config = readSettings();
      const { temporalUiUrl } = externalTemporal(config) === undefined ? stackFile(config) : {};
      const page = config.TEMPORAL_UI_URL ?? temporalUiUrl;
      return typeof page === 'string' ? deliveryStoryUrl(page, temporal().namespace, delivery) : null;
    },
    retentionAt: () => readSettings().RETENTION_AT,
    /** Whether commands go to the embedded stack of DATA_DIR, which has no backups. */
    embedded: () => typeof stackFile(readSettings()).databaseUrl === 'string',
    async checkTarget(url: string): Promise<WebhookUrlCheck> {
      const config = readSettings();
      const rules = targetRules(config);
      const receiver = receiverOf(config);
      const check = await checkRegistrationTarget(url, {
        allowedCidrs: [...rules.allowedCidrs, ...receiver.cidrs],
        allowedPorts: [...rules.allowedPorts, ...receiver.ports],
        hosts: new Map([...rules.hosts, ...receiver.hosts]),
        resolver: createResolver(),
      });
      // Only the embedded stack has a receiver: a refused port there is most likely a developer's own receiver.
      if (check.ok || check.reason !== 'port' || receiver.ports.length === 0) return check;
      return { ...check, message: `${check.message} ${OWN_RECEIVER}` };
    },
  };
}

const OWN_RECEIVER =
  'For a receiver on this machine see "A receiver of your own" in docs/operations/embedded-stack.md.';

function stackFile(config: Config): StackFile {
  const file = join(resolve(config.DATA_DIR), 'stack.json');
  // Another database has nothing to do with an embedded stack in the same directory.
  if (config.DATABASE_URL !== undefined || !existsSync(file)) return {};
  return (JSON.parse(readFileSync(file, 'utf8')) as StackFile | null) ?? {};
}

/** The embedded stack's worker may send to its receiver on this machine, so that receiver can be registered. */
function receiverOf(config: Config) {
  const { receiverUrl } = stackFile(config);
  const url = typeof receiverUrl === 'string' ? parsedUrl(receiverUrl) : undefined;
  if (url === undefined) return { cidrs: [], ports: [], hosts: [] };
  const { hostname, port } = url;
  const address = '127.0.0.1';
  return { cidrs: [`${address}/32`], ports: [Number(port)], hosts: [[hostname, [address]] as const] };
}
