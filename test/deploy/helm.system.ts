import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { BlockList, isIPv6 } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { runProgram } from '../../dev/temporal/tools';
import { isPublicAddress } from '../../outbound/connect';
import { SETTING_GROUPS } from '../../runtime/config/settings';
import { runDirectory } from '../../testbed/temporary-directory';
import { composeServices } from '../support/compose-file';
import { fileOfPage } from '../support/handbook';
import { findHelm, findKubeconform, KUBERNETES, writeSchemas } from '../support/helm';

const CHART = 'deploy/helm';
const peers = (cidr: string) => [{ ipBlock: { cidr } }];

/** What every installation has to name. */
const LEAST = {
  image: { repository: 'registry.example/quotes' },
  api: { trustedProxies: '10.0.0.0/8' },
  temporal: { address: 'temporal:7233', tlsSecretName: 'quotes-temporal' },
  network: {
    fromPublic: peers('10.0.1.0/24'),
    toPostgres: peers('10.0.2.0/24'),
    toRedis: peers('10.0.2.0/24'),
    toTemporal: peers('10.0.3.0/24'),
  },
};
const RULES = readFileSync('deploy/prometheus/alerts.yml', 'utf8');
const CHOSEN = {
  annotations: { 'sidecar.istio.io/inject': 'false' },
  labels: { team: 'quotes' },
  nodeSelector: { pool: 'quotes' },
  tolerations: [{ key: 'pool', operator: 'Exists' }],
  affinity: { podAntiAffinity: {} },
  priorityClassName: 'high',
};
const SETS = {
  'an ingress, and the Prometheus operator': {
    ingress: { enabled: true, className: 'nginx', host: 'quotes.example', tlsSecretName: 'quotes-tls' },
    monitoring: { enabled: true, runbooksUrl: 'https://docs.example/operations', rules: RULES },
  },
  'a gateway, and Temporal Cloud': {
    gateway: { enabled: true, host: 'quotes.example', parentRefs: [{ name: 'public' }] },
    temporal: { tlsSecretName: '', namespace: 'quotes.a1b2c', prepare: false },
  },
  'workers of two builds': { worker: { builds: ['0.1.0', `0.1.1@sha256:${'a'.repeat(64)}`] } },
  'settings, and networks of its own': {
    pods: CHOSEN,
    network: { enabled: false },
    api: { env: { RATE_LIMIT_PER_MINUTE: 1_000 } },
  },
} as const;

// oxlint-disable-next-line typescript/no-explicit-any -- documents of every kind
type Rendered = any;

const NOTHING_MORE = {};

const directory = runDirectory('helm');
let helm: string;
let kubeconform: string;
let schemas: string;
beforeAll(async () => {
  helm = await findHelm();
  kubeconform = await findKubeconform();
  schemas = await writeSchemas(directory);
}, 1_200_000);

/** @param values in addition to `least`, or in place of parts of it @returns a program and its arguments */
async function commandOf(
  command: string,
  values: Readonly<Record<string, object | null>>,
  least: object,
): Promise<[string, ...string[]]> {
  const files = [];
  for (const [name, some] of Object.entries({ least, values })) {
    const file = join(directory, `${name}.yaml`);
    await writeFile(file, stringify(some));
    files.push('--values', file);
  }
  return [helm, ...command.split(' '), CHART, '--kube-version', '1.37.2', ...files];
}

async function run(
  command: string,
  values: Readonly<Record<string, object | null>>,
  least: object = LEAST,
): Promise<string> {
  const [program, ...args] = await commandOf(command, values, least);
  return runProgram(program, args, { timeoutMs: 60_000 });
}

/** Helm takes a second of CPU, so each text is made once. */
const texts = new Map<object, Promise<string>>();
function template(values: Readonly<Record<string, object | null>>): Promise<string> {
  const text = texts.get(values) ?? run('template quotes', values);
  texts.set(values, text);
  return text;
}

const rendered = async (values: Readonly<Record<string, object | null>>) =>
  parseAllDocuments(await template(values)).map((one): Rendered => one.toJSON());

const podsOf = (all: readonly Rendered[]) =>
  all.flatMap(({ metadata, spec }) =>
    spec.template === undefined ? [] : [{ name: metadata.name, pod: spec.template.spec }],
  );

const kindsOfAll = (all: readonly Rendered[]) => all.map(({ kind }): string => kind).toSorted();
const kindsOf = (all: readonly Rendered[]) => [...new Set(all.map(({ kind }): string => kind))].toSorted();

const OURS = 'Deployment HorizontalPodAutoscaler Job NetworkPolicy PodDisruptionBudget Service'.split(' ');
test.each([
  ['an ingress, and the Prometheus operator', [...OURS, 'Ingress', 'PodMonitor', 'PrometheusRule']],
  ['a gateway, and Temporal Cloud', [...OURS, 'HTTPRoute']],
  ['workers of two builds', OURS],
  ['settings, and networks of its own', OURS.filter((kind) => kind !== 'NetworkPolicy')],
] as const)('%s: lint finds nothing, and pods are guarded as in docker-compose.yml', async (name, kinds) => {
  expect(await run('lint --strict', SETS[name])).toContain('0 chart(s) failed');
  const all = await rendered(SETS[name]);
  expect(kindsOf(all)).toEqual(kinds.toSorted());
  const pods = podsOf(all);
  const count = { 'a gateway, and Temporal Cloud': 4, 'workers of two builds': 6 } as const;
  expect(pods.length).toBe(count[name as keyof typeof count] ?? 5);
  const known = new Set(Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group)));
  for (const { name: of, pod } of pods) {
    const securityContext = { runAsNonRoot: true };
    expect(pod).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      securityContext,
    });
    const [container] = pod.containers;
    expect(container).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      resources: {
        requests: expect.anything(),
        limits: { cpu: expect.anything(), memory: expect.anything() },
      },
    });
    const settings: string[] = (container.env ?? []).map((one: { name: string }) => one.name);
    expect(settings.filter((one) => !known.has(one))).toEqual([]);
    const component: string = of.replace(/^quotes-|-0-1-\d$/g, '');
    const service = composeServices()[{ api: 'api-1', worker: 'worker-1' }[component] ?? component];
    // Of `ops` there is a pod that waits for commands.
    expect(container.command).toEqual(component === 'ops' ? ['sleep', 'infinity'] : service?.command);
    if (component !== 'api' && component !== 'worker') continue;
    expect(container).toMatchObject({ readinessProbe: { httpGet: { path: '/ready', port: 8081 } } });
    // Longer than compose gives it, which is longer than it needs.
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
      parseFloat(service?.stop_grace_period ?? ''),
    );
  }
});

/** Holds objects against the schemas of a version. */
async function expectKnown(text: string, version: string): Promise<void> {
  const flags = ['-strict', '-output', 'json', '-summary', '-verbose'];
  const command = [kubeconform, ...flags, '-kubernetes-version', version, '-schema-location', schemas];
  // It ends with 1 when it finds something.
  const out = await runProgram('sh', ['-c', '"$@" || true', 'sh', ...command], {
    timeoutMs: 60_000,
    input: Readable.from(text),
  });
  const { resources } = JSON.parse(out) as { resources: { kind: string; status: string; msg: string }[] };
  expect(resources.filter(({ status }) => status !== 'statusValid')).toEqual([]);
  expect(resources.length).toBe(parseAllDocuments(text).filter((one) => one.toJSON() !== null).length);
}

test.each(KUBERNETES)(
  'Kubernetes %s knows every field, as well of the files of the page',
  async (version) => {
    const page = await run('template quotes', parse(fileOfPage('kubernetes', '# quotes.yaml')), {});
    const files = ['# stores.yaml', '# authority.yaml'].map((name) => fileOfPage('kubernetes', name));
    const sets = [];
    for (const values of Object.values(SETS)) sets.push(await template(values));
    await expectKnown([...sets, page, ...files].join('\n---\n'), version);
  },
);

test('a pod reaches Postgres, Redis or Temporal where it has to, partners alone outside, and nothing else reaches it', async () => {
  const all = await rendered(SETS['an ingress, and the Prometheus operator']);
  const policies = all.filter(({ kind }) => kind === 'NetworkPolicy');
  const ports = (rules: readonly { ports?: readonly { port: number }[] }[] | null) =>
    (rules ?? []).flatMap((rule) => (rule.ports ?? []).map(({ port }) => port));
  const found = policies.map(({ metadata, spec: { ingress, egress } }) => [
    metadata.name,
    { from: ports(ingress), to: [...new Set(ports(egress))] },
  ]);
  expect(Object.fromEntries(found)).toEqual({
    'quotes-api': { from: [8080], to: [53, 5432, 6379] },
    'quotes-worker': { from: [], to: [53, 5432, 7233, 1] },
    'quotes-ops': { from: [], to: [53, 5432, 7233] },
    'quotes-migrate': { from: [], to: [53, 5432] },
    'quotes-prepare-temporal': { from: [], to: [53, 7233] },
  });
});

test("OpenShift chooses the user and group of a pod, and its DNS listens on 5353 behind the service's 53", async () => {
  const text = await run('template quotes --api-versions security.openshift.io/v1', NOTHING_MORE);
  const all = parseAllDocuments(text).map((one): Rendered => one.toJSON());
  for (const { pod } of podsOf(all))
    expect(pod.securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  const policies = all.filter(({ kind }) => kind === 'NetworkPolicy');
  expect(policies.length).toBe(5);
  for (const { spec } of policies)
    expect(spec.egress[0].ports.map(({ port }: Rendered) => port)).toEqual([53, 53, 5353, 5353]);
});

test('of the addresses outside a worker reaches those that it takes for public, by IPv4 and IPv6', async () => {
  const policies = (await rendered(NOTHING_MORE)).filter(
    ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'quotes-worker',
  );
  const outside = policies.flatMap(
    ({ spec }) => spec.egress.find(({ ports }: Rendered) => ports?.[0].port === 1).to,
  );
  const has = (cidr: string, address: string) => {
    const [network = '', bits] = cidr.split('/');
    const list = new BlockList();
    list.addSubnet(network, Number(bits), isIPv6(network) ? 'ipv6' : 'ipv4');
    return list.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  };
  const reached = (address: string) =>
    outside.some(
      ({ ipBlock }) =>
        has(ipBlock.cidr, address) && !ipBlock.except?.some((cidr: string) => has(cidr, address)),
    );
  const open = ['93.184.215.14', '2606:2800:21f:cb07::1', '2a00:1450:4009::1'];
  const closed4 = ['10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.169.254', '172.31.0.1', '192.168.0.1'];
  const closed6 = ['::1', 'fd00::1', 'fe80::1', 'ff02::1', '2002:a01:203::1', '64:ff9b::a01:203'];
  const all = [...open, ...closed4, ...closed6, '::ffff:10.1.2.3'];
  for (const judge of [isPublicAddress, reached]) expect(all.filter(judge)).toEqual(open);
});

test('each build has workers of its own, by its image and with its id', async () => {
  const workers = (await rendered(SETS['workers of two builds'])).filter(
    ({ kind, metadata }) => kind === 'Deployment' && metadata.name.startsWith('quotes-worker'),
  );
  const found = workers.map(({ metadata, spec: { selector, template } }) => {
    const [{ image, env }] = template.spec.containers;
    const id = env.find((one: Rendered) => one.name === 'WORKER_BUILD_ID').value;
    const selected = Object.entries(selector.matchLabels).every(
      ([label, value]) => template.metadata.labels[label] === value,
    );
    return [metadata.name, id, selector.matchLabels['app.kubernetes.io/version'], selected, image];
  });
  const [first, second] = SETS['workers of two builds'].worker.builds;
  expect(found).toEqual([
    ['quotes-worker-0-1-0', '0.1.0', '0.1.0', true, `registry.example/quotes:${first}`],
    ['quotes-worker-0-1-1', '0.1.1', '0.1.1', true, `registry.example/quotes:${second}`],
  ]);
});

test('pods of a release are spread by themselves, and leave a lost node within 30 s', async () => {
  for (const { name, pod } of podsOf(await rendered(NOTHING_MORE))) {
    const runs = name === 'quotes-api' || name === 'quotes-worker';
    expect([name, pod.topologySpreadConstraints?.[0].matchLabelKeys]).toEqual([
      name,
      runs ? ['pod-template-hash'] : undefined,
    ]);
    expect((pod.tolerations ?? []).map((one: Rendered) => one.tolerationSeconds)).toEqual(
      runs ? [30, 30] : [],
    );
  }
});

test('every pod has the annotations, labels and places that are chosen for pods', async () => {
  const all = await rendered(SETS['settings, and networks of its own']);
  const templates = all.flatMap(({ spec }) => spec.template ?? []);
  expect(templates.length).toBe(5);
  const { annotations, labels, tolerations, ...spec } = CHOSEN;
  for (const template of templates) {
    expect(template).toMatchObject({ metadata: { annotations, labels }, spec });
    expect(template.spec.tolerations).toEqual(expect.arrayContaining(tolerations));
  }
});

test('values of a chart that had none for pods are enough, as with --reuse-values', async () => {
  const pods = podsOf(
    parseAllDocuments(await run('template quotes', { pods: null })).map((one) => one.toJSON()),
  );
  expect(pods.length).toBe(5);
});

test('authorities of stores are in every pod, those of partners in workers alone, in another folder', async () => {
  const authorities = { stores: { secretName: 'ours' }, partners: { configMapName: 'theirs' } };
  const found = podsOf(await rendered({ authorities })).map(({ name, pod: { containers, volumes } }) => {
    const env = containers[0].env?.filter(
      (one: Rendered) => /CA/.test(one.name) && !/TEMPORAL/.test(one.name),
    );
    const sources = volumes.flatMap((one: Rendered) => one.configMap?.name ?? one.secret?.secretName ?? []);
    const mounts = containers[0].volumeMounts.map((one: Rendered) => one.mountPath);
    return [name, { env: env ?? [], sources, mounts }];
  });
  const tmp = '/tmp';
  const [stores, partners, temporal] = ['/run/stores', '/run/partners', '/run/temporal'];
  expect(Object.fromEntries(found)).toEqual({
    'quotes-api': {
      env: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/run/stores/ca.pem' }],
      sources: ['ours'],
      mounts: [tmp, stores],
    },
    'quotes-worker': {
      env: [{ name: 'WEBHOOK_CA_FILE', value: '/run/partners/ca.pem' }],
      sources: ['ours', 'theirs', 'quotes-temporal'],
      mounts: [tmp, stores, partners, temporal],
    },
    'quotes-ops': { env: [], sources: ['ours', 'quotes-temporal'], mounts: [tmp, stores, temporal] },
    'quotes-migrate': { env: [], sources: ['ours'], mounts: [tmp, stores] },
    'quotes-prepare-temporal': {
      env: [],
      sources: ['ours', 'quotes-temporal'],
      mounts: [tmp, stores, temporal],
    },
  });
});

test('what the hooks make is gone when they have succeeded, and a failed job ends before Helm gives up', async () => {
  const hooks = (await rendered(NOTHING_MORE)).filter(
    ({ metadata }) => metadata.annotations?.['helm.sh/hook'],
  );
  expect(kindsOfAll(hooks)).toEqual(['Job', 'Job', 'NetworkPolicy', 'NetworkPolicy']);
  for (const { kind, metadata, spec } of hooks) {
    expect(metadata.annotations['helm.sh/hook-delete-policy']).toBe('before-hook-creation,hook-succeeded');
    if (kind !== 'Job') continue;
    // Helm's own limit is 5 minutes, the page's is longer.
    expect(spec).toMatchObject({ activeDeadlineSeconds: 270, ttlSecondsAfterFinished: 86_400 });
    // Pods of a job that starts them again are deleted with their logs when it fails.
    expect(spec.template.spec.restartPolicy).toBe('Never');
  }
});

test('the longest name of a release and a long tag of an image fit where Kubernetes takes 63 characters', async () => {
  const name = `quotes-${'x'.repeat(46)}`;
  const tag = `${'a'.repeat(62)}_${'b'.repeat(36)}`;
  const text = await run(`template ${name}`, { image: { ...LEAST.image, tag } });
  const all = parseAllDocuments(text).map((one): Rendered => one.toJSON());
  const labels = all.flatMap(({ metadata, spec }) => [metadata.labels, spec.template?.metadata.labels ?? {}]);
  // Kubernetes makes the name of a job a label of its pods.
  const names = all.flatMap(({ kind, metadata }) => (/Job|Service/.test(kind) ? [metadata.name] : []));
  expect(names.length).toBe(4);
  expect(new Set(names).size).toBe(4);
  const values: string[] = [...names, ...labels.flatMap((some) => Object.values(some))];
  expect(values.filter((value) => !/^[a-zA-Z0-9]([\w.-]{0,61}[a-zA-Z0-9])?$/.test(value))).toEqual([]);
  expect(text).toContain(`image: "registry.example/quotes:${tag}"`);
  expect(await refusal({ image: { ...LEAST.image, tag: '0.1.0+1' } })).toContain('/image/tag');
  // Kubernetes takes the name of a job with a dot, and then not that of the service, when migrations have run.
  await expect(run('template quotes.live', NOTHING_MORE)).rejects.toThrow('choose another name');
});

// Kubernetes takes each server-side apply of one for a change: `kubectl diff` reports it for good.
test('no network policy has an empty list', async () => {
  const policies = (await rendered(NOTHING_MORE)).filter(({ kind }) => kind === 'NetworkPolicy');
  expect(policies.length).toBe(5);
  expect(
    policies.filter(({ spec }) => [spec.ingress, spec.egress].some((rules) => rules?.length === 0)),
  ).toEqual([]);
});

test('the alert rules are those of deploy/prometheus, with the address of the runbooks', async () => {
  const all = await rendered(SETS['an ingress, and the Prometheus operator']);
  const rules = RULES.replaceAll('{{ $externalLabels.runbooks }}', 'https://docs.example/operations');
  expect(all.find(({ kind }) => kind === 'PrometheusRule')?.spec).toEqual(parse(rules));
});

/** @returns all that Helm says of values, however much it is. */
async function refusal(values: Readonly<Record<string, object | null>>): Promise<string> {
  const command = await commandOf('template quotes', values, LEAST);
  return runProgram('sh', ['-c', '"$@" 2>&1 || true', 'sh', ...command], { timeoutMs: 60_000 });
}

test('a misspelt value is refused at every level', async () => {
  const free = new Set(['env', 'resources', 'annotations', 'labels', 'nodeSelector', 'affinity']);
  const levels: string[] = [];
  const misspell = (values: Readonly<Record<string, unknown>>, at: string): Record<string, unknown> => {
    levels.push(at);
    const inner = Object.entries(values).filter(
      ([name, value]) => typeof value === 'object' && !Array.isArray(value) && !free.has(name),
    );
    return {
      misspelt: 1,
      ...Object.fromEntries(
        inner.map(([name, value]) => [name, misspell(value as Record<string, unknown>, `${at}/${name}`)]),
      ),
    };
  };
  const wrong = misspell(parse(readFileSync(`${CHART}/values.yaml`, 'utf8')), '');
  const refused = await refusal(wrong as Record<string, object>);
  expect(levels.length).toBeGreaterThan(10);
  expect(
    levels.filter((at) => !refused.includes(`at '${at}': additional properties 'misspelt' not allowed`)),
  ).toEqual([]);
});

test('values that cannot work are refused, and each is named', async () => {
  const wrong = {
    image: { repository: '', tag: 'latest', pullSecrets: ['registry'] },
    pods: { labels: { 'app.kubernetes.io/component': 'other' } },
    api: { trustedProxies: '', env: { DATABASE_URL: 'postgres://x' }, autoscaling: { min: 1 } },
    worker: { env: { NODE_EXTRA_CA_CERTS: '/run/stores/ca.pem' }, builds: ['0.1.0@latest', '0.1.0_'] },
    authorities: { stores: { secretName: 'one', configMapName: 'two' } },
    migrate: { deadlineSeconds: 5 },
    temporal: { address: 'temporal' },
    network: { toPostgres: [] },
    ingress: { enabled: true },
    monitoring: { enabled: true },
    wroker: {},
  };
  const said = await refusal(wrong);
  const named = [
    '/image/repository',
    '/image/tag',
    '/image/pullSecrets/0',
    "'app.kubernetes.io/component'",
    '/api/trustedProxies',
    "invalid propertyName 'DATABASE_URL'",
    '/api/autoscaling/min',
    "'NODE_EXTRA_CA_CERTS'",
    '/authorities/stores',
    '/migrate/deadlineSeconds',
    '/temporal/address',
    '/worker/builds/0',
    '/worker/builds/1',
    '/network/toPostgres',
    '/ingress',
    '/monitoring/runbooksUrl',
    '/monitoring/rules',
    'wroker',
  ];
  expect(named.filter((where) => !said.includes(where))).toEqual([]);
  await expect(run('template quotes', wrong)).rejects.toThrow("'wroker' not allowed");
});
