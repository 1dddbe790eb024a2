import { readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { parse } from 'yaml';

/** What docker-compose.yml says of a service, with variables filled in. */
export interface Service {
  readonly name: string;
  readonly image: string;
  /** Entry point and command. */
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly user: string | undefined;
  readonly readOnly: boolean;
  readonly tmpfs: readonly string[];
  /** Files and folders of ours, by the path that it sees; secrets among them. */
  readonly mounts: readonly { readonly from: string; readonly to: string }[];
  /** Named volumes, by the path that it sees. */
  readonly volumes: readonly { readonly name: string; readonly to: string; readonly readOnly: boolean }[];
  /** Of the health check. */
  readonly test: readonly string[] | undefined;
  readonly needs: Readonly<Record<string, string>>;
  readonly networks: readonly { readonly name: string; readonly address: string | undefined }[];
  readonly graceMs: number;
  readonly stopSignal: NodeJS.Signals | undefined;
  readonly profiles: readonly string[];
}

/** As it stands in the file, variables filled in. */
export interface RawService {
  image: string;
  entrypoint?: string[];
  command?: string[];
  environment?: Record<string, unknown>;
  user?: string;
  read_only?: boolean;
  tmpfs?: string[];
  volumes?: string[];
  secrets?: string[];
  healthcheck?: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
  networks?: string[] | Record<string, { ipv4_address?: string }>;
  stop_grace_period?: string;
  stop_signal?: NodeJS.Signals;
  profiles?: string[];
  [more: string]: unknown;
}

interface RawFile {
  readonly services: Record<string, RawService>;
  readonly secrets: Record<string, { file: string }>;
}

type Variables = Readonly<Record<string, string>>;

function parseFile(root: string, variables: Variables): RawFile {
  const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
  return parse(interpolate(text, variables), { merge: true }) as RawFile;
}

/** The services of docker-compose.yml by name. @throws when a variable that it demands is missing. */
export function readRaw(root: string, variables: Variables): Readonly<Record<string, RawService>> {
  return parseFile(root, variables).services;
}

/**
 * Reads docker-compose.yml, in the order of its dependencies.
 * @throws when a variable that it demands is missing.
 */
export function readCompose(root: string, variables: Variables): Service[] {
  const raw = parseFile(root, variables);
  const ours = (path: string) => (isAbsolute(path) ? path : join(root, path));
  const services = Object.entries(raw.services).map(([name, one]): Service => {
    const networks = one.networks ?? {};
    const mounted = (one.volumes ?? []).map((volume) => volume.split(':'));
    const files = mounted.filter(([from]) => /^[./]/.test(from ?? ''));
    const named = mounted.filter((volume) => !files.includes(volume));
    return {
      name,
      image: one.image,
      argv: [...(one.entrypoint ?? []), ...(one.command ?? [])],
      environment: Object.fromEntries(
        Object.entries(one.environment ?? {}).map(([key, value]) => [key, String(value)]),
      ),
      user: one.user,
      readOnly: one.read_only === true,
      tmpfs: one.tmpfs ?? [],
      mounts: [
        ...files.map(([from = '', to = '']) => ({ from: ours(from), to })),
        ...(one.secrets ?? []).map((secret) => ({
          from: ours(raw.secrets[secret]?.file ?? ''),
          to: `/run/secrets/${secret}`,
        })),
      ],
      volumes: named.map(([volume = '', to = '', mode]) => ({ name: volume, to, readOnly: mode === 'ro' })),
      test: one.healthcheck?.test.slice(1),
      needs: Object.fromEntries(
        Object.entries(one.depends_on ?? {}).map(([other, { condition }]) => [other, condition]),
      ),
      networks: Array.isArray(networks)
        ? networks.map((network) => ({ name: network, address: undefined }))
        : Object.entries(networks).map(([network, { ipv4_address: address }]) => ({
            name: network,
            address,
          })),
      graceMs: Number.parseInt(one.stop_grace_period ?? '10s', 10) * 1_000,
      stopSignal: one.stop_signal,
      profiles: one.profiles ?? [],
    };
  });
  return inOrder(services);
}

/** `${NAME:?…}`, `${NAME:-…}` and `$$`, as Compose knows them. */
function interpolate(text: string, variables: Variables): string {
  return text.replaceAll(/\$\$|\$\{(\w+)(?::([?-])([^}]*))?\}/g, (found, name, kind, other) => {
    if (found === '$$') return '$';
    const value = variables[String(name)];
    if (value) return value;
    if (kind === '-') return String(other);
    throw new Error(`${String(name)} is not set: ${String(other)}`);
  });
}

function inOrder(services: readonly Service[]): Service[] {
  const sorted: Service[] = [];
  const add = (one: Service) => {
    if (sorted.includes(one)) return;
    for (const name of Object.keys(one.needs)) {
      const other = services.find((service) => service.name === name);
      if (other === undefined) throw new Error(`${one.name} depends on ${name}, which is not there`);
      add(other);
    }
    sorted.push(one);
  };
  services.forEach(add);
  return sorted;
}
