import { deepStrictEqual, ok, strictEqual } from 'node:assert';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseAllDocuments, stringify } from 'yaml';
import type { Seen, Watched } from './kubelet';
import { MACHINE } from './partner';
import { probesOf, runArguments, type PodTemplate, type Yaml } from './pods';
import { reckon, underTraffic, type Scene } from './scene';

/** The address of the first API process in docker-compose.yml, to which the proxy passes calls on. */
const SERVICE = '172.31.250.11';
const anyone = [{ podSelector: {} }];
const VALUES = {
  image: { repository: 'partner-finance-quote-service', tag: 'one' },
  api: { trustedProxies: SERVICE, env: { RATE_LIMIT_PER_MINUTE: 100_000, DATABASE_TIMEOUT_MS: 20_000 } },
  worker: { env: { WEBHOOK_CA_FILE: '/run/temporal/partner-ca.pem' } },
  // The workers of docker-compose.yml have a build id, these have none.
  temporal: { address: 'temporal:7233', namespace: 'kubernetes', tlsSecretName: 'quotes-temporal' },
  ingress: { enabled: true, className: 'nginx', host: 'quotes.example.com', tlsSecretName: 'quotes-tls' },
  network: {
    fromPublic: anyone,
    fromLenders: anyone,
    toPostgres: anyone,
    toRedis: anyone,
    toTemporal: anyone,
  },
};
/** Networks of docker-compose.yml by the ports that a network policy opens; lenders and monitoring come by a network that is joined anyway. */
const INGRESS: Readonly<Record<number, string>> = { 8080: 'edge' };
const EGRESS: Readonly<Record<number, string>> = {
  5432: 'data',
  6379: 'data',
  7233: 'temporal',
  1: 'outbound',
};
/** A service goes on sending connections to a pod that was told to stop, until every node knows. */
const ENDPOINTS_MS = 5_000;
/** Of the partner's endpoint. */
const SLOW_MS = 1_000;

const matches = (labels: object, selector: object) =>
  Object.entries(selector).every(([name, value]) => labels[name as keyof typeof labels] === value);

class Cluster {
  readonly #rendered: readonly Yaml[];
  readonly #folder: string;
  readonly #secrets: Readonly<Record<string, Record<string, string>>>;
  #pods: Watched[] = [];
  #count = 0;

  constructor(
    readonly scene: Scene,
    text: string,
    secrets: Readonly<Record<string, Record<string, string>>>,
  ) {
    // Kubernetes reads YAML 1.1, in which 0440 is octal.
    this.#rendered = parseAllDocuments(text, { version: '1.1' }).map((one) => one.toJSON());
    this.#secrets = secrets;
    this.#folder = join(scene.project.folder, 'pods');
    mkdirSync(this.#folder, { mode: 0o711 });
    this.#tell([]);
    scene.project.write('pods/seen.json', '{}');
  }

  all = (kind: string) => this.#rendered.filter((one) => one.kind === kind);
  one(kind: string, name: string) {
    const found = this.all(kind).find(({ metadata }) => metadata.name === name);
    if (found === undefined) throw new Error(`no ${kind} ${name} was rendered`);
    return found;
  }
  #tell(pods: readonly Watched[]) {
    this.#pods = [...pods];
    const file = join(this.#folder, 'pods.json');
    writeFileSync(`${file}.part`, JSON.stringify(pods));
    renameSync(`${file}.part`, file);
  }
  #seen = () => JSON.parse(readFileSync(join(this.#folder, 'seen.json'), 'utf8')) as Record<string, Seen>;

  /** A container, on the networks that its policy opens. */
  async #run(name: string, template: PodTemplate): Promise<void> {
    const { labels } = template.metadata;
    const policies = this.all('NetworkPolicy').filter(({ spec }) =>
      matches(labels, spec.podSelector.matchLabels),
    );
    strictEqual(policies.length, 1, `policies of ${name}`);
    const [{ spec }] = policies;
    const joined = (rules: Yaml[], networks: Readonly<Record<number, string>>) =>
      rules
        .flatMap(({ ports }) => ports.map(({ port }: Yaml) => networks[port]))
        .filter((one) => one !== undefined);
    const networks = [...new Set([...joined(spec.ingress, INGRESS), ...joined(spec.egress, EGRESS)])];
    const around = { name, folder: this.#folder, secrets: this.#secrets, networks };
    const args = runArguments(template, around).map((one) => `'${one}'`);
    // The partner's name server, where a cluster has its own.
    await this.scene.project.run(`docker run --dns 93.184.215.14 ${args.join(' ')}`);
  }

  /** The jobs that are hooks, one after the other. @returns how many */
  async jobs(): Promise<number> {
    const jobs = this.all('Job').filter(({ metadata }) =>
      metadata.annotations['helm.sh/hook'].includes('pre-install,pre-upgrade'),
    );
    for (const { metadata, spec } of jobs) {
      await this.#run(metadata.name, spec.template);
      const ended = `timeout ${spec.activeDeadlineSeconds} docker wait ${metadata.name}`;
      strictEqual(await this.scene.project.run(ended), '0', `${metadata.name} failed`);
      await this.scene.project.run(`docker rm ${metadata.name}`);
    }
    return jobs.length;
  }

  /** Nodes, as far as pods notice them, and the services. */
  async nodes(): Promise<void> {
    const ports = Object.entries({ 8080: 'quotes-api', 8081: 'quotes-internal' }).map(([port, name]) => {
      const { selector, ports } = this.one('Service', name).spec;
      ok(matches(this.one('Deployment', 'quotes-api').spec.template.metadata.labels, selector), name);
      return [port, ports[0].targetPort];
    });
    await this.scene.project.run(
      `docker run --detach --init --name nodes --network name=finance_edge,ip=${SERVICE} --network finance_data -v '${this.#folder}:/pods' \
        -v "$PWD/test/containers/kubelet.ts:/kubelet.ts:ro" node:24-bookworm-slim node /kubelet.ts /pods '${JSON.stringify(Object.fromEntries(ports))}'`,
    );
  }

  /** @returns the name of a new pod, which is not ready yet. */
  async start(component: 'api' | 'worker'): Promise<string> {
    const name = `quotes-${component}-${(this.#count += 1)}`;
    const { template } = this.one('Deployment', `quotes-${component}`).spec;
    await this.#run(name, template);
    this.#tell([...this.#pods, { name, starts: 1, probes: probesOf(template), serves: component === 'api' }]);
    return name;
  }

  /** Waits until every pod is ready. */
  async ready(): Promise<void> {
    for (const startedAt = Date.now(); ; await sleep(200)) {
      const seen = this.#seen();
      const states = this.#pods.map(({ name, starts }) => seen[`${name} ${starts}`]);
      for (const [name, { failed }] of Object.entries(seen)) strictEqual(failed, null, `a probe of ${name}`);
      if (states.every((one) => one?.ready)) break;
      ok(Date.now() - startedAt < 150_000, `not ready: ${JSON.stringify(seen)}`);
    }
  }

  /** The process of a pod, killed from the machine; its container starts again. */
  async kill(name: string): Promise<void> {
    const { project } = this.scene;
    await project.run(`machine kill -9 $(docker inspect --format '{{.State.Pid}}' ${name})`);
    this.#tell(this.#pods.map((one) => (one.name === name ? { ...one, starts: one.starts + 1 } : one)));
    await this.ready();
    strictEqual(await project.run(`docker inspect --format '{{.RestartCount}}' ${name}`), '1');
  }

  /** As for a node that is drained. @returns the seconds that the process took to end. */
  async evict(name: string): Promise<number> {
    const { project } = this.scene;
    const startedAt = Date.now();
    const stopped = project.run(`docker stop ${name}`);
    await sleep(ENDPOINTS_MS);
    this.#tell(this.#pods.filter((one) => one.name !== name));
    await stopped;
    // 137 when the engine had to kill it.
    const code = await project.run(`docker inspect --format '{{.State.ExitCode}}' ${name}`);
    const seconds = Math.round((Date.now() - startedAt) / 100) / 10;
    strictEqual(code, '0', `${name} ended with ${code} after ${seconds} s`);
    await project.run(`docker rm ${name}`);
    return seconds;
  }

  /** Each probe of each pod was asked. */
  asked(): void {
    for (const [name, { asked }] of Object.entries(this.#seen()))
      ok(Math.min(...Object.values(asked)) > 0, `${name} was asked ${JSON.stringify(asked)}`);
  }
  names = (component: string) =>
    this.#pods.map(({ name }) => name).filter((name) => name.includes(component));
}

async function secretsOf({ project, outside }: Scene) {
  const lines = readFileSync(join(project.folder, '.env'), 'utf8').matchAll(/^(\w+)=(.*)$/gm);
  const {
    REDIS_PASSWORD,
    WEBHOOK_KEYS = '',
    ...env
  } = Object.fromEntries([...lines].map(([, key, it]) => [key, it]));
  const database = (login: string, password: string) => ({
    DATABASE_URL: `postgres://${login}:${env[password]}@postgres:5432/quotes`,
  });
  const file = async (name: string) => [
    name,
    await project.run(
      `docker run --rm -v finance_temporal-client:/from:ro node:24-bookworm-slim cat /from/${name}`,
    ),
  ];
  const files = await Promise.all(['ca.pem', 'cert.pem', 'key.pem'].map(file));
  return {
    'quotes-migrate': database('quotes', 'QUOTES_DB_PASSWORD'),
    'quotes-api': {
      ...database('quotes_api', 'QUOTES_API_DB_PASSWORD'),
      REDIS_URL: `redis://:${REDIS_PASSWORD}@redis:6379`,
    },
    'quotes-worker': { ...database('quotes_worker', 'QUOTES_WORKER_DB_PASSWORD'), WEBHOOK_KEYS },
    'quotes-temporal': { ...Object.fromEntries(files), 'partner-ca.pem': outside.receiver.ca },
  };
}

/** Runs `work` under traffic. @returns quotes answered, quotes lost, events that arrived, and those that arrived more than once. */
async function watched(scene: Scene, work: () => Promise<void>) {
  const { outside, answered } = scene;
  const before = { quotes: answered.length, requests: outside.receiver.received.length };
  const lost = await underTraffic(scene, work);
  const ids = outside.receiver.received.slice(before.requests).map(({ eventId }) => eventId);
  const twice = ids.filter((id, nth) => ids.indexOf(id) !== nth);
  return { quotes: answered.length - before.quotes, lost, events: new Set(ids).size, twice };
}

/** Pods that deploy/helm renders, beside the stores of docker-compose.yml; API and workers of that have stopped. */
export async function kubernetes(scene: Scene): Promise<void> {
  const { project, outside, credentials, answered, figures } = scene;
  const { receiver } = outside;
  project.write('values.yaml', stringify(VALUES));
  const text = await project.run(
    'helm template quotes deploy/helm --kube-version 1.33.0 --values values.yaml',
  );
  const cluster = new Cluster(scene, text, await secretsOf(scene));
  await project.run('docker compose stop api-1 api-2 worker-1 worker-2');
  project.write('kubernetes.yml', 'services: { proxy: { environment: { API_1_READY: 9000 } } }\n');
  const files = project.environment['COMPOSE_FILE'] ?? '';
  project.environment['COMPOSE_FILE'] = `${files}:kubernetes.yml`;
  strictEqual(await cluster.jobs(), 2);
  await cluster.nodes();
  const { minReplicas } = cluster.one('HorizontalPodAutoscaler', 'quotes-api').spec;
  const { replicas } = cluster.one('Deployment', 'quotes-worker').spec;
  deepStrictEqual([minReplicas, replicas], [2, 2]);
  for (const component of ['api', 'worker', 'api', 'worker'] as const) await cluster.start(component);
  await cluster.ready();
  await project.run('docker compose up -d --no-deps --wait proxy');

  const quoted = await outside.quote(credentials.key, MACHINE.ipv4);
  strictEqual(quoted.status, 200, JSON.stringify(quoted.body));
  answered.push(quoted.body.data.service_quote_id);

  outside.answerAfter(SLOW_MS);
  const since = (ms: number) => {
    const recent = receiver.received.filter(({ atMs }) => atMs > performance.now() - ms);
    return recent.map(({ eventId }) => eventId);
  };
  const mayRepeat = new Set<string>();
  const kills = await watched(scene, async () => {
    for (const name of [...cluster.names('api').slice(0, 1), ...cluster.names('worker').slice(0, 1)]) {
      const killed = cluster.kill(name);
      await sleep(1_000);
      // Sent and not answered, or answered and not recorded.
      for (const id of since(SLOW_MS + 2_000)) mayRepeat.add(id);
      await killed;
    }
  });
  ok(kills.quotes > 0 && kills.events > 0 && mayRepeat.size > 0, JSON.stringify(kills));
  deepStrictEqual(
    kills.twice.filter((id) => !mayRepeat.has(id)),
    [],
  );

  let [interrupted, seconds]: [number, number[]] = [0, []];
  const drain = await watched(scene, async () => {
    const node = [...cluster.names('api').slice(0, 1), ...cluster.names('worker').slice(0, 1)];
    interrupted = since(SLOW_MS).length;
    const evicted = node.map((name) => cluster.evict(name));
    await cluster.start('api');
    await cluster.start('worker');
    seconds = await Promise.all(evicted);
    await cluster.ready();
  });
  ok(drain.quotes > 0 && drain.events > 0 && interrupted > 0, JSON.stringify({ drain, interrupted }));
  deepStrictEqual([drain.lost, drain.twice], [[], []]);
  cluster.asked();
  outside.answerAfter(0);
  const [api_stop_s = 0, worker_stop_s = 0] = seconds;
  figures.pods = {
    drained_quotes: drain.quotes,
    drained_events: drain.events,
    api_stop_s,
    worker_stop_s,
    sent_twice: kills.twice.length,
  };

  await Promise.all([...cluster.names('api'), ...cluster.names('worker')].map((name) => cluster.evict(name)));
  await project.run('docker rm -f nodes');
  project.environment['COMPOSE_FILE'] = files;
  await project.run('docker compose up -d --wait');
  await reckon(scene);
}
