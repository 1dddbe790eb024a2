import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Probe } from './kubelet';

/** As YAML has it: every field is looked at before it is used. */
// oxlint-disable-next-line typescript/no-explicit-any -- the translation refuses what it does not know
export type Yaml = any;

type Reader = (value: Yaml) => readonly string[];

/** Translates each field by its reader. @throws on one that has none, as it would be lost without a word. */
const fields =
  (of: string, readers: Readonly<Record<string, Reader>>): Reader =>
  (value) =>
    Object.entries(value).flatMap(([name, it]) => {
      const reader = readers[name];
      if (reader === undefined) throw new Error(`${of}.${name} is not translated`);
      return reader(it);
    });
const each =
  (reader: Reader): Reader =>
  (list: Yaml[]) =>
    list.flatMap(reader);
/** A container engine does the same by itself, or has no use for it. */
const nothing: Reader = () => [];
const only =
  (...accepted: readonly unknown[]): Reader =>
  (value) => {
    if (!accepted.includes(value)) throw new Error(`${String(value)} is not translated`);
    return [];
  };
const bytes = (quantity: string) => quantity.replace(/i$/, '').toLowerCase();

export interface PodTemplate {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: Yaml;
}
interface Around {
  readonly name: string;
  /** For files of secrets and environments. */
  readonly folder: string;
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly networks: readonly string[];
}

/** @returns what `docker run` needs to run the one container of a pod as a node would. */
export function runArguments({ metadata, spec }: PodTemplate, around: Around): string[] {
  const { name, folder, secrets, networks } = around;
  const secretOf = (secret: string) => {
    const found = secrets[secret];
    if (found === undefined) throw new Error(`there is no secret ${secret}`);
    return found;
  };
  const environment: Record<string, string> = {};
  const [container] = spec.containers;
  const { fsGroup, runAsUser, runAsGroup } = spec.securityContext;

  const secretVolume = ({ secretName, defaultMode, ...rest }: Yaml, path: string): string[] => {
    fields('secret', {})(rest);
    const at = join(folder, `${name}-${secretName}`);
    mkdirSync(at);
    for (const [key, text] of Object.entries(secretOf(secretName))) {
      writeFileSync(join(at, key), text);
      chownSync(join(at, key), 0, fsGroup);
      chmodSync(join(at, key), defaultMode);
    }
    return ['--volume', `${at}:${path}:ro`];
  };
  const emptyDir = ({ medium, sizeLimit, ...rest }: Yaml, path: string): string[] => {
    fields('emptyDir', {})(rest);
    only('Memory')(medium);
    return ['--tmpfs', `${path}:rw,exec,size=${bytes(sizeLimit)},mode=2777,gid=${fsGroup}`];
  };
  const mount: Reader = ({ name: of, mountPath, readOnly: _readOnly, ...rest }) => {
    fields('volumeMount', {})(rest);
    const { name: _name, ...volume } = spec.volumes.find((one: Yaml) => one.name === of);
    return fields('volume', {
      emptyDir: (it) => emptyDir(it, mountPath),
      secret: (it) => secretVolume(it, mountPath),
    })(volume);
  };
  const probe: Reader = fields('probe', {
    httpGet: fields('httpGet', { path: nothing, port: nothing }),
    periodSeconds: nothing,
    timeoutSeconds: nothing,
    failureThreshold: nothing,
  });
  const inContainer = fields('container', {
    name: nothing,
    image: nothing,
    command: ([program]) => ['--entrypoint', program],
    envFrom: each(
      fields('envFrom', {
        secretRef: ({ name: secret }) => (Object.assign(environment, secretOf(secret)), []),
      }),
    ),
    env: each(({ name: variable, value, ...rest }) => {
      environment[variable] = value;
      return fields('env', {})(rest);
    }),
    resources: fields('resources', {
      requests: nothing,
      limits: fields('limits', {
        cpu: (it: string) => ['--cpus', it.endsWith('m') ? String(parseInt(it, 10) / 1_000) : it],
        memory: (it: string) => ['--memory', bytes(it), '--memory-swap', bytes(it)],
      }),
    }),
    securityContext: fields('container.securityContext', {
      allowPrivilegeEscalation: (it) => (only(false)(it), ['--security-opt', 'no-new-privileges:true']),
      readOnlyRootFilesystem: (it) => (only(true)(it), ['--read-only']),
      capabilities: fields('capabilities', { drop: each((it) => ['--cap-drop', it]) }),
    }),
    ports: nothing,
    startupProbe: probe,
    readinessProbe: probe,
    livenessProbe: probe,
    volumeMounts: each(mount),
  });
  const flags = fields('pod', {
    automountServiceAccountToken: only(false),
    terminationGracePeriodSeconds: (seconds) => ['--stop-timeout', String(seconds)],
    restartPolicy: (policy: 'Always' | 'Never') => ['--restart', { Always: 'always', Never: 'no' }[policy]],
    securityContext: fields('pod.securityContext', {
      runAsNonRoot: only(true),
      runAsUser: () => ['--user', `${runAsUser}:${runAsGroup}`],
      runAsGroup: nothing,
      fsGroup: (group) => ['--group-add', String(group)],
      // The engine's own profile.
      seccompProfile: fields('seccompProfile', { type: only('RuntimeDefault') }),
    }),
    // For several nodes.
    topologySpreadConstraints: nothing,
    tolerations: nothing,
    containers: (list: Yaml[]) => {
      if (list.length !== 1) throw new Error('a pod with several containers is not translated');
      return inContainer(list[0]);
    },
    volumes: nothing,
  })(spec);

  const file = join(folder, `${name}.env`);
  writeFileSync(
    file,
    Object.entries(environment)
      .map(([key, value]) => `${key}=${value}\n`)
      .join(''),
  );
  // The name that leads to the address on the first network alone.
  const joined = networks.map(
    (network, nth) => `name=finance_${network}${nth === 0 ? `,alias=${name}.pod` : ''}`,
  );
  const labels = Object.entries(metadata.labels).map(([key, value]) => `${key}=${value}`);
  return [
    '--detach',
    '--pull=never',
    `--name=${name}`,
    `--env-file=${file}`,
    ...labels.flatMap((label) => ['--label', label]),
    ...joined.flatMap((network) => ['--network', network]),
    ...flags,
    container.image,
    ...container.command.slice(1),
  ];
}

export const probesOf = ({
  spec,
}: PodTemplate): Readonly<Record<'startup' | 'readiness' | 'liveness', Probe>> => {
  const { startupProbe: startup, readinessProbe: readiness, livenessProbe: liveness } = spec.containers[0];
  return { startup, readiness, liveness };
};
