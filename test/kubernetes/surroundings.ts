import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';

const root = join(__dirname, '../..');
const images = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
const imageOf = (name: string) => {
  const found = new RegExp(`image: (${name}:[^@\\s]+)`).exec(images)?.[1];
  if (found === undefined) throw new Error(`docker-compose.yml names no image ${name}`);
  return found;
};
const filesOf = (...paths: readonly string[]) =>
  Object.fromEntries(paths.map((path) => [path.split('/').at(-1), readFileSync(join(root, path), 'utf8')]));

/** The node that has stores and ingress; it takes no other pods. */
const NODE = 'node4';
/** What the Pod Security standard `restricted` demands. */
const RESTRICTED = {
  pod: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  container: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
};

type Json = Readonly<Record<string, unknown>>;
const object = (kind: string, namespace: string, name: string, rest: Json, labels: Json = {}) => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace, labels },
  ...rest,
});
const namespace = (name: string, labels: Json = {}) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});
const environment = (values: Readonly<Record<string, string>>) =>
  Object.entries(values).map(([name, value]) => ({ name, value }));

interface Server {
  readonly namespace: string;
  /** Of the pod and its service. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly port: number;
  readonly targetPort?: number;
  readonly clusterIP?: string;
  readonly user: number;
  readonly container: Json;
  readonly init?: Json;
  /** Paths of mounted Secrets and ConfigMaps; and of empty folders. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly folders?: readonly string[];
}

function server(it: Server) {
  const mounts: { readonly mountPath: string; readonly source: Json }[] = [
    ...Object.entries(it.secrets ?? {}).map(([mountPath, secretName]) => ({
      mountPath,
      source: { secret: { secretName, defaultMode: 0o640 } },
    })),
    ...Object.entries(it.files ?? {}).map(([mountPath, name]) => ({
      mountPath,
      source: { configMap: { name } },
    })),
    ...(it.folders ?? []).map((mountPath) => ({ mountPath, source: { emptyDir: {} } })),
  ];
  const container = {
    name: it.name,
    securityContext: RESTRICTED.container,
    volumeMounts: mounts.map(({ mountPath }, nth) => ({ name: `v${nth}`, mountPath })),
  };
  const spec = {
    nodeName: NODE,
    automountServiceAccountToken: false,
    terminationGracePeriodSeconds: 1,
    securityContext: { ...RESTRICTED.pod, runAsUser: it.user, runAsGroup: it.user, fsGroup: it.user },
    initContainers: it.init === undefined ? [] : [{ ...container, name: 'init', ...it.init }],
    containers: [
      {
        ...container,
        // As much as ours, or it gets nothing while they start.
        resources: { requests: { cpu: '250m', memory: '128Mi' } },
        readinessProbe: { tcpSocket: { port: it.targetPort ?? it.port }, periodSeconds: 2 },
        ...it.container,
      },
    ],
    volumes: mounts.map(({ source }, nth) => ({ name: `v${nth}`, ...source })),
  };
  const ports = [{ port: it.port, targetPort: it.targetPort ?? it.port }];
  const address = it.clusterIP === undefined ? {} : { clusterIP: it.clusterIP };
  return [
    object('Pod', it.namespace, it.name, { spec }, it.labels),
    object('Service', it.namespace, it.name, { spec: { selector: it.labels, ports, ...address } }),
  ];
}

const postgres = (
  at: string,
  name: string,
  passwords: Readonly<Record<string, string>>,
  args: readonly string[],
) =>
  server({
    namespace: at,
    name,
    labels: { 'cnpg.io/cluster': at },
    port: 5432,
    user: 999,
    container: {
      image: imageOf('postgres'),
      args: ['postgres', '-c', 'max_connections=300', ...args],
      env: environment({ POSTGRES_USER: 'postgres', ...passwords }),
      readinessProbe: {
        exec: { command: ['pg_isready', '-h', '127.0.0.1', '-U', 'postgres'] },
        periodSeconds: 2,
      },
    },
    files: { '/docker-entrypoint-initdb.d': 'postgres' },
    folders: ['/var/lib/postgresql'],
    ...(args.length > 0 ? { secrets: { '/tls': 'postgres-tls' } } : {}),
  });

/** An ingress as far as it matters here: it ends TLS, and passes on to a service of ours. */
const proxy = (at: string, port: number, clusterIP: string, to: string) => {
  const config = `
defaults
  mode http
  option http-server-close
  timeout connect 2s
  timeout client 60s
  timeout server 8s
  retries 3
resolvers cluster
  nameserver dns 10.89.0.1:53
  hold valid 1s
listen in
  bind :8443 ssl crt /tls/tls.pem
  option forwardfor
  http-request set-header X-Forwarded-Proto https
  server service ${to}.quotes.svc.cluster.local:80 resolvers cluster resolve-prefer ipv4 init-addr none
`;
  return [
    object('ConfigMap', at, 'proxy', { data: { 'haproxy.cfg': config } }),
    ...server({
      namespace: at,
      name: 'ingress',
      labels: { app: 'ingress' },
      port,
      targetPort: 8443,
      clusterIP,
      user: 99,
      container: { image: imageOf('haproxy'), command: ['haproxy', '-db', '-f', '/config/haproxy.cfg'] },
      files: { '/config': 'proxy' },
      secrets: { '/tls': 'tls' },
    }),
  ];
};

export interface Surroundings {
  /** As deploy/postgres/init.sh names them, and of the superuser. */
  readonly passwords: Readonly<Record<string, string>>;
  readonly redisPassword: string;
  /** Certificates with their keys, by namespace and Secret. */
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
}

/** @returns manifests of all that the handbook leaves to others: stores, Temporal, ingress, a gateway of lenders; and a stranger's pod. */
export function surroundings({ passwords, redisPassword, secrets }: Surroundings): string {
  const temporal = [
    'deploy/temporal/server.yaml',
    'deploy/temporal/dynamic-config.yaml',
    'deploy/temporal/schema.sh',
    'deploy/temporal/visibility-indexes.sql',
  ];
  const password = { TEMPORAL_DB_PASSWORD: passwords['TEMPORAL_DB_PASSWORD'] ?? '' };
  const all = [
    namespace('temporal'),
    namespace('ingress-nginx'),
    namespace('gateway', { lenders: 'true' }),
    ...['quotes', 'temporal'].map((at) =>
      object('ConfigMap', at, 'postgres', { data: filesOf('deploy/postgres/init.sh') }),
    ),
    ...Object.entries(secrets).map(([key, stringData]) => {
      const [at = '', name = ''] = key.split('/');
      return object('Secret', at, name, { stringData });
    }),
    ...postgres('quotes', 'quotes-rw', passwords, [
      '-c',
      'ssl=on',
      '-c',
      'ssl_cert_file=/tls/cert.pem',
      '-c',
      'ssl_key_file=/tls/key.pem',
    ]),
    ...postgres('temporal', 'postgres', passwords, []),
    ...server({
      namespace: 'quotes',
      name: 'redis',
      labels: { app: 'redis' },
      port: 6379,
      user: 999,
      container: {
        image: imageOf('redis'),
        command: [
          'sh',
          '-euc',
          'umask 077; echo "requirepass $REDISCLI_AUTH" >/data/redis.conf; exec redis-server /data/redis.conf --port 0 --tls-port 6379 --tls-cert-file /tls/cert.pem --tls-key-file /tls/key.pem --tls-ca-cert-file /tls/ca.pem --tls-auth-clients no --save ""',
        ],
        env: environment({ REDISCLI_AUTH: redisPassword }),
      },
      secrets: { '/tls': 'redis-tls' },
      folders: ['/data'],
    }),
    object('ConfigMap', 'temporal', 'temporal', { data: filesOf(...temporal) }),
    ...server({
      namespace: 'temporal',
      name: 'temporal-frontend',
      labels: { app: 'temporal' },
      port: 7233,
      user: 1000,
      init: {
        image: imageOf('temporalio/admin-tools'),
        command: ['sh', '-c', 'until sh /etc/temporal/deploy/schema.sh; do sleep 1; done'],
        env: environment({ SQL_HOST: 'postgres', SQL_PORT: '5432', ...password }),
      },
      container: {
        image: imageOf('temporalio/server'),
        // In two processes, so that one can be stopped alone.
        command: [
          'sh',
          '-c',
          `start() { temporal-server --root /etc/temporal --config deploy --env server --allow-no-auth start "$@"; }
          while sleep 1; do start --service history; done & start --service frontend --service matching --service worker`,
        ],
        env: environment({
          TEMPORAL_BIND: '0.0.0.0',
          TEMPORAL_DB_ADDRESS: 'postgres:5432',
          TEMPORAL_DYNAMIC_CONFIG: '/etc/temporal/deploy/dynamic-config.yaml',
          GOGC: '400',
          GOMEMLIMIT: '1200MiB',
          ...password,
        }),
      },
      files: { '/etc/temporal/deploy': 'temporal' },
      secrets: { '/etc/temporal/tls': 'temporal-tls' },
    }),
    ...proxy('ingress-nginx', 443, '10.96.0.100', 'quotes-api'),
    ...proxy('gateway', 8444, '10.96.0.101', 'quotes-internal'),
    // Of cluster.sh, beside the control plane.
    object('Service', 'kube-system', 'metrics-server', {
      spec: { ports: [{ port: 443, targetPort: 4443 }] },
    }),
    {
      ...object(
        'EndpointSlice',
        'kube-system',
        'metrics-server',
        {},
        { 'kubernetes.io/service-name': 'metrics-server' },
      ),
      apiVersion: 'discovery.k8s.io/v1',
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.89.0.1'] }],
      ports: [{ port: 4443 }],
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1beta1.metrics.k8s.io' },
      spec: {
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        service: { namespace: 'kube-system', name: 'metrics-server' },
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
      },
    },
    object('Pod', 'quotes', 'stranger', {
      spec: {
        nodeName: NODE,
        terminationGracePeriodSeconds: 1,
        securityContext: { ...RESTRICTED.pod, runAsUser: 1000 },
        containers: [
          {
            name: 'stranger',
            image: 'registry.example/quotes:0.1.0',
            command: ['sleep', 'infinity'],
            securityContext: RESTRICTED.container,
          },
        ],
      },
    }),
  ];
  return all.map((one) => stringify(one, { version: '1.1' })).join('---\n');
}
