import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseKeyRing, type KeyRing } from '../db/endpoints/key-ring';
import { checkRegistrationTarget, type RegistrationCheck } from '../outbound/sender';
import { parsedUrl } from '../domain/webhook-url';
import { createResolver } from '../outbound/connect';
import { ConfigError, opsActor, targetRules, type Config } from '../runtime/config/config';
import { externalTemporal, temporalTarget, type TemporalTarget } from '../runtime/temporal/temporal-target';

/** What `stack.json` of the embedded stack may contain. */
type StackFile = Partial<
  Record<'databaseUrl' | 'temporalAddress' | 'temporalUiUrl' | 'receiverUrl', unknown>
>;

/** What `ops` needs, each from the settings, else from the embedded stack in DATA_DIR. Nothing is read before it is asked for. */
interface OpsOptions {
  /** @throws ConfigError when no database is known. */
  databaseUrl(): string;
  /** @throws ConfigError when no keys are known, KeyRingError when they cannot be used. */
  keyRing(): KeyRing;
  temporal(): TemporalTarget;
  /** Who makes a change. @throws ConfigError for a shared account in production. */
  actor(loginName: string): string;
  /** Address of Temporal's web page; null when none is known. */
  temporalUi(): string | null;
  retentionAt(): string;
  checkTarget(url: string): Promise<RegistrationCheck>;
}

/** @param readSettings reads the settings; called by every part anew, so that what needs none asks for none. */
export function opsOptions(readSettings: () => Config): OpsOptions {
  return {
    databaseUrl() {
      const config = readSettings();
      if (config.DATABASE_URL !== undefined) return config.DATABASE_URL;
      const { databaseUrl } = stackFile(config);
      if (typeof databaseUrl === 'string') return databaseUrl;
      const looked = join(resolve(config.DATA_DIR), 'stack.json');
      throw new ConfigError(
        `no database: set DATABASE_URL, or start the embedded stack first (npm start; looked for ${looked}).`,
      );
    },
    keyRing() {
      const config = readSettings();
      if (config.WEBHOOK_KEYS !== undefined) return parseKeyRing(config.WEBHOOK_KEYS);
      const file = join(resolve(config.DATA_DIR), 'webhook-keys');
      // Keys that the database's secrets were not sealed with would lock its worker out of them.
      if (config.DATABASE_URL === undefined && existsSync(file)) {
        return parseKeyRing(readFileSync(file, 'utf8').trim());
      }
      throw new ConfigError(
        config.DATABASE_URL === undefined
          ? `no webhook keys: set WEBHOOK_KEYS, or start the embedded stack first (npm start; looked for ${file}).`
          : 'no webhook keys: with DATABASE_URL set, WEBHOOK_KEYS must be what its workers have.',
      );
    },
    temporal() {
      const config = readSettings();
      const named = temporalTarget(config);
      const { temporalAddress } = stackFile(config);
      if (externalTemporal(config) !== undefined || typeof temporalAddress !== 'string') return named;
      return { ...named, connection: { address: temporalAddress } };
    },
    actor: (loginName) => opsActor(readSettings(), loginName),
    temporalUi() {
      const config = readSettings();
      if (config.TEMPORAL_UI_URL !== undefined) return config.TEMPORAL_UI_URL;
      const { temporalUiUrl } = stackFile(config);
      const embedded = externalTemporal(config) === undefined && typeof temporalUiUrl === 'string';
      return embedded ? temporalUiUrl : null;
    },
    retentionAt: () => readSettings().RETENTION_AT,
    async checkTarget(url) {
      const config = readSettings();
      const rules = targetRules(config);
      const receiver = receiverOf(config);
      const check = await checkRegistrationTarget(url, {
        allowedCidrs: [...rules.allowedCidrs, ...receiver.cidrs],
        allowedPorts: [...rules.allowedPorts, ...receiver.ports],
        hosts: new Map([...rules.hosts, ...receiver.hosts]),
        resolver: createResolver(),
      });
      // Only the embedded stack has a receiver: there somebody tries one of their own.
      if (check.ok || check.reason !== 'port' || receiver.ports.length === 0) return check;
      return { ...check, message: `${check.message} ${OWN_RECEIVER}` };
    },
  };
}

const OWN_RECEIVER =
  'For a receiver on this machine see "A receiver of your own" in docs/operations/embedded-stack.md.';

function stackFile(config: Config): StackFile {
  const file = join(resolve(config.DATA_DIR), 'stack.json');
  // A database of one's own has nothing to do with an embedded stack that happens to lie about.
  if (config.DATABASE_URL !== undefined || !existsSync(file)) return {};
  return (JSON.parse(readFileSync(file, 'utf8')) as StackFile | null) ?? {};
}

/** The embedded stack's worker may send to its receiver on this machine; so that one can be registered. */
function receiverOf(config: Config) {
  const { receiverUrl } = stackFile(config);
  const url = typeof receiverUrl === 'string' ? parsedUrl(receiverUrl) : undefined;
  if (url === undefined) return { cidrs: [], ports: [], hosts: [] };
  const { hostname, port } = url;
  const address = '127.0.0.1';
  return { cidrs: [`${address}/32`], ports: [Number(port)], hosts: [[hostname, [address]] as const] };
}
