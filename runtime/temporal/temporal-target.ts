import { X509Certificate } from 'node:crypto';
import { loadClientConnectConfig } from '@temporalio/envconfig';
import type { NativeConnectionOptions } from '@temporalio/worker';
import { type Config, ConfigError } from '../config/config';
import { type TemporalSettings, temporalSettings } from '../config/settings';

export interface TemporalTarget {
  readonly namespace: string;
  readonly connection: NativeConnectionOptions & { readonly address: string };
}

/** Its client certificate; null without one. */
function certificateOf({ connection: { tls } }: TemporalTarget): X509Certificate | null {
  const pair = typeof tls === 'object' && tls !== null ? tls.clientCertPair : undefined;
  return pair === undefined ? null : new X509Certificate(pair.crt);
}

/** When the client certificate ends, in Unix milliseconds, and for how long it is valid, in milliseconds; NaN without one. */
export function certificateLife(target: TemporalTarget) {
  const { validFrom = '', validTo = '' } = certificateOf(target) ?? {};
  const endsMs = Date.parse(validTo);
  return { endsMs, lifetimeMs: endsMs - Date.parse(validFrom) };
}

/** @returns that the client certificate ends: in the last third of its life, and its last 30 days; null before, or without one */
export function certificateEnds(target: TemporalTarget, nowMs: number): string | null {
  const { endsMs, lifetimeMs } = certificateLife(target);
  if (!(endsMs - nowMs <= Math.min(lifetimeMs / 3, 30 * 86_400_000))) return null;
  return `started with a certificate for Temporal that ends at ${new Date(endsMs).toISOString()}`;
}

/**
 * Otherwise gRPC asks DNS for a TXT record, which without an answer keeps a process alive for 20 s, and goes through the
 * proxy of `https_proxy` or `http_proxy`, as Docker's client gives them to every container; workers do not.
 */
export const CHANNEL = {
  channelArgs: { 'grpc.service_config_disable_resolution': 1, 'grpc.enable_http_proxy': 0 },
} as const;

/** Compressing calls of a kilobyte costs more than sending them. The SDK's default is gzip. */
const UNCOMPRESSED = { grpcCompression: { codec: 'none' } } as const;

/**
 * The Temporal of the settings; undefined: the embedded one.
 * @throws ConfigError for a contradiction or a file that cannot be read
 */
export function externalTemporal(config: TemporalSettings): TemporalTarget | undefined {
  const { connectionOptions, namespace = 'default' } = load(config);
  const { address, apiKey, tls } = connectionOptions;
  if (address === undefined) {
    if (apiKey !== undefined || tls !== undefined)
      throw new ConfigError('an API key or TLS for Temporal needs TEMPORAL_ADDRESS as well.');
    return undefined;
  }
  return {
    namespace,
    connection: {
      ...UNCOMPRESSED,
      address,
      ...(tls !== undefined && { tls }),
      // By the namespace Temporal Cloud finds the account of a key; the SDK leaves it out of the first call.
      ...(apiKey !== undefined && { apiKey, metadata: { 'temporal-namespace': namespace } }),
    },
  };
}

export function temporalTarget(config: TemporalSettings & Pick<Config, 'STACK_PORT'>): TemporalTarget {
  return (
    externalTemporal(config) ?? {
      namespace: config.TEMPORAL_NAMESPACE ?? 'default',
      connection: { ...UNCOMPRESSED, address: `127.0.0.1:${config.STACK_PORT}` },
    }
  );
}

function load(config: TemporalSettings) {
  const names = Object.keys(temporalSettings) as (keyof TemporalSettings)[];
  const given = names.flatMap((name) => (config[name] === undefined ? [] : [[name, config[name]] as const]));
  try {
    return loadClientConnectConfig({
      overrideEnvVars: Object.fromEntries(given),
      // A file in a home directory must not decide where a service connects to.
      disableFile: true,
    });
  } catch (error) {
    throw new ConfigError(`settings for Temporal that cannot be used: ${(error as Error).message}`);
  }
}
