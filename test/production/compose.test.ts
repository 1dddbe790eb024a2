import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { DEPLOYED_CONFIG } from '../../dev/temporal-postgres/config';
import { SERVER_VERSION } from '../../dev/temporal-postgres/executables';
import { roleOf } from '../../db/postgres/roles';
import { SHUTDOWN_GRACE_MS } from '../../runtime/api/start-api';
import { readConfig, SETTING_GROUPS } from '../../runtime/config/config';
import { readCompose, readRaw, type Service } from '../../scripts/rehearsal/compose';
import { parse } from 'yaml';
import { needs } from '../support/needs';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

const root = join(__dirname, '../..');
const example = parseEnv(readFileSync(join(root, '.env.example'), 'utf8'));
const variables: Record<string, string> = {
  ...Object.fromEntries(Object.keys(example).map((name) => [name, `secret${name.length}`])),
  WEBHOOK_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`,
  TLS_PEM_FILE: '/etc/pfqs/tls.pem',
};
const services = readCompose(root, variables);
const ours = services.filter(({ image }) => image.startsWith('partner-finance-quote-service'));
const serviceOf = (name: string): Service => services.find((one) => one.name === name)!;

needs('docker-compose')('docker-compose', () => {
  test('accepts the file with what .env.example names, and refuses it when that is empty', async () => {
    const directory = await temporaryDirectory('compose');
    const file = join(directory, 'env');
    await writeFile(
      file,
      Object.entries(variables)
        .map(([name, value]) => `${name}=${value}\n`)
        .join(''),
    );
    const config = (from: string) =>
      execFileSync('docker-compose', ['--env-file', from, 'config'], { cwd: root, stdio: 'pipe' }).toString();
    try {
      expect(Object.keys((parse(config(file)) as { services: object }).services)).toEqual(
        expect.arrayContaining(['api-1', 'api-2', 'worker-1', 'worker-2', 'proxy', 'migrate', 'temporal']),
      );
      expect(() => config('.env.example')).toThrow(/see .env.example/);
      const monitored = execFileSync(
        'docker-compose',
        ['--env-file', file, '--profile', 'monitoring', 'config', '--services'],
        { cwd: root, stdio: 'pipe' },
      );
      expect(monitored.toString().split('\n')).toEqual(
        expect.arrayContaining(['prometheus', 'grafana', 'node-exporter', 'blackbox-exporter']),
      );
    } finally {
      await removeDirectory(directory);
    }
  }, 60_000);
});

test('every service is bounded and guarded', () => {
  for (const [name, one] of Object.entries(readRaw(root, variables))) {
    expect({ name, ...one }).toMatchObject({
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
      mem_limit: expect.stringMatching(/^\d+[mg]$/),
      cpus: expect.any(Number),
      pids_limit: expect.any(Number),
      read_only: true,
    });
    // Docker Hub's short names, with a version.
    expect(one.image).toMatch(/^[\w-]+(\/[\w-]+)?:[\w.-]+$/);
  }
  expect(ours.map(({ user }) => user)).toEqual(ours.map(() => 'node'));
});

test('server and schema tool of Temporal are of the version that benches and rehearsals run', () => {
  for (const name of ['temporal', 'temporal-schema'])
    expect(serviceOf(name).image).toMatch(new RegExp(`:${SERVER_VERSION.replaceAll('.', String.raw`\.`)}$`));
});

test('no secret stands in the file', () => {
  const without = readFileSync(join(root, 'docker-compose.yml'), 'utf8').replaceAll(/\$\{[^}]+\}/g, '');
  expect(without).not.toMatch(/password: *['"]?\w|postgres:\/\/\w+:\w|whsec_|sk_(live|test)_/i);
  expect(Object.values(example).join('')).toBe('');
});

test('every kind of process has a database login of its own, which init.sh makes, with a password of its own', () => {
  const text = readFileSync(join(root, 'docker-compose.yml'), 'utf8');
  const logins = [...text.matchAll(/postgres:\/\/(\w+):\$\{(\w+):/g)].map(([, login, password]) => [
    login,
    password,
  ]);
  expect(logins).toEqual([
    ['quotes_api', 'QUOTES_API_DB_PASSWORD'],
    ['quotes_worker', 'QUOTES_WORKER_DB_PASSWORD'],
    ['quotes', 'QUOTES_DB_PASSWORD'],
    ['quotes_ops', 'QUOTES_OPS_DB_PASSWORD'],
  ]);
  const loginOf = (name: string) => new URL(serviceOf(name).environment['DATABASE_URL'] ?? '').username;
  expect(loginOf('migrate')).toBe('quotes');
  for (const [name, process] of [
    ['api-1', 'api'],
    ['api-2', 'api'],
    ['worker-1', 'worker'],
    ['worker-2', 'worker'],
    ['ops', 'ops'],
  ] as const)
    expect(loginOf(name)).toBe(roleOf(process));
  const init = readFileSync(join(root, 'deploy/postgres/init.sh'), 'utf8');
  for (const [login, password] of logins) {
    expect(init).toContain(`create role ${login} login password`);
    expect(init).toContain(`"$${password}"`);
    expect(serviceOf('postgres').environment).toHaveProperty(String(password));
  }
});

test('what it runs exists, with settings that the service knows and takes', () => {
  const known = new Set(Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group)));
  for (const { argv, environment } of ours) {
    const script = argv.find((argument) => argument.startsWith('dist/')) ?? '';
    expect(existsSync(join(root, script.replace(/^dist\/(.+)\.js$/, '$1.ts')))).toBe(true);
    expect(Object.keys(environment).filter((name) => !known.has(name))).toEqual([]);
    expect(() => readConfig(environment)).not.toThrow();
  }
});

test('processes have the time to stop that their settings take', () => {
  const api = serviceOf('api-1');
  const { SHUTDOWN_DELAY_MS } = readConfig(api.environment);
  expect(api.graceMs).toBeGreaterThan(SHUTDOWN_DELAY_MS + SHUTDOWN_GRACE_MS);
  // runtime/worker/worker-session.ts: forced after 60 s.
  expect(serviceOf('worker-1').graceMs).toBeGreaterThan(60_000);
});

test('the API trusts the proxy alone, and the proxy knows both API processes', () => {
  const address = (name: string) => serviceOf(name).networks.find(({ address: fixed }) => fixed)?.address;
  const proxy = serviceOf('proxy').environment;
  for (const nth of [1, 2]) {
    const { API_PORT, INTERNAL_PORT, TRUSTED_PROXIES } = serviceOf(`api-${nth}`).environment;
    expect(proxy[`API_${nth}`]).toBe(`${address(`api-${nth}`)}:${API_PORT}`);
    expect(proxy[`API_${nth}_READY`]).toBe(INTERNAL_PORT);
    expect(TRUSTED_PROXIES).toBe(address('proxy'));
  }
});

test('who can reach what: lender integrations the proxy alone, and Temporal only those with a certificate', () => {
  const on = (network: string) =>
    services.filter(({ networks }) => networks.some(({ name }) => name === network)).map(({ name }) => name);
  expect(on('lenders')).toEqual(['proxy']);
  const temporalUsers = on('temporal').filter((name) => name !== 'temporal');
  expect(temporalUsers.toSorted()).toEqual([
    'ops',
    'prepare-temporal',
    'temporal-ui',
    'worker-1',
    'worker-2',
  ]);
  expect(on('temporal-data').toSorted()).toEqual(['postgres', 'temporal', 'temporal-schema']);
  expect(on('data')).not.toContain('temporal');
  for (const name of temporalUsers.filter((one) => one !== 'temporal-ui')) {
    const { environment, volumes } = serviceOf(name);
    const { TEMPORAL_TLS_CLIENT_KEY_PATH: key = '' } = environment;
    expect(volumes).toEqual([{ name: 'temporal-client', to: dirname(key), readOnly: true }]);
  }
  // The key of the authority is for the job that issues.
  const withAuthority = services.filter(({ volumes }) =>
    volumes.some((one) => one.name === 'temporal-authority'),
  );
  expect(withAuthority.map(({ name }) => name)).toEqual(['certificates']);
  expect(serviceOf('certificates').networks).toEqual([]);
});

test('metrics of the proxy are on the network of the API processes only', () => {
  const { networks, environment } = serviceOf('proxy');
  const edge = networks.find(({ name }) => name === 'edge')?.address;
  expect(environment['PROXY_INTERNAL']).toBe(`${edge}:8404`);
});

test('the scripts that the handbook runs in the container of Postgres are there', () => {
  const page = readFileSync(join(root, 'docs/operations/backup.md'), 'utf8');
  const named = [...page.matchAll(/postgres (?:bash )?(\/\w+\.sh)/g)].map(([, path]) => path);
  expect(new Set(named)).toEqual(new Set(['/backup.sh', '/restore.sh']));
  const { mounts, argv } = serviceOf('postgres');
  const there = mounts.filter(({ from }) => existsSync(from)).map(({ to }) => to);
  expect(there).toEqual(expect.arrayContaining([...named, '/archive.sh']));
  expect(argv).toContain('archive_command=bash /archive.sh %p %f');
});

test("Temporal's page is on this machine only, and changes nothing", () => {
  const { ports, environment } = readRaw(root, variables)['temporal-ui'] as Record<string, unknown>;
  expect(ports).toEqual(['127.0.0.1:8233:8080']);
  expect(environment).toMatchObject({ TEMPORAL_DISABLE_WRITE_ACTIONS: 'true' });
});

test("Temporal's dynamic configuration is what the bench measures, and TLS among its services", () => {
  const file = readFileSync(join(root, 'deploy/temporal/dynamic-config.yaml'), 'utf8');
  const rules = parse(file) as Record<string, { value: unknown }[]>;
  const values = Object.fromEntries(Object.entries(rules).map(([name, [rule]]) => [name, rule?.value]));
  expect(values).toEqual({ ...DEPLOYED_CONFIG, 'system.enableRingpopTLS': true });
});

test("Temporal's configuration is filled in from the variables that its service has", () => {
  const file = readFileSync(join(root, 'deploy/temporal/server.yaml'), 'utf8');
  expect(file).toMatch(/^# enable-template/);
  const wanted = [...file.matchAll(/'\{\{ env "(\w+)" \}\}'/g)].map(([, name]) => name);
  expect(Object.keys(serviceOf('temporal').environment)).toEqual(expect.arrayContaining(wanted));
  expect(file.match(/\{ ?\{/g)).toHaveLength(wanted.length);
  expect(parse(file, { merge: true })).toMatchObject({
    persistence: { datastores: { visibility: { sql: { pluginName: 'postgres12_pgx' } } } },
  });
});

describe('the monitoring', () => {
  const on = (name: string) => serviceOf(name).networks.map((network) => network.name);
  const { scrape_configs: jobs } = parse(
    readFileSync(join(root, 'deploy/prometheus/prometheus.yml'), 'utf8'),
  ) as {
    scrape_configs: {
      job_name: string;
      static_configs: { targets: string[] }[];
      relabel_configs?: { target_label?: string; replacement?: string }[];
    }[];
  };
  const targets = jobs.flatMap(({ static_configs, relabel_configs = [] }) => [
    ...static_configs.flatMap((config) => config.targets),
    ...relabel_configs.flatMap(({ replacement }) => (replacement === undefined ? [] : [replacement])),
  ]);
  const serviceAt = (host: string) =>
    services.find(({ name, networks }) => name === host || networks.some(({ address }) => address === host));

  test('is a profile, published on this machine only', () => {
    for (const name of ['prometheus', 'grafana', 'node-exporter', 'blackbox-exporter']) {
      expect(serviceOf(name).profiles).toEqual(['monitoring']);
      const { ports = [] } = readRaw(root, variables)[name] as { ports?: string[] };
      expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
    }
  });

  test('scrapes every API and worker process, at the port of its metrics, over a network that both are on', () => {
    for (const one of ours.filter(({ name }) => /^(api|worker)-/.test(name))) {
      const port = one.environment['INTERNAL_PORT'] ?? one.environment['WORKER_PORT'];
      expect(targets).toContain(`${one.name}:${port}`);
    }
    for (const target of targets) {
      const [host = ''] = target.split(':');
      const service = serviceAt(host);
      expect({ target, service }).toMatchObject({ service: expect.anything() as unknown });
      // The certificate is asked for by blackbox-exporter.
      const from = target.endsWith(':8443') ? 'blackbox-exporter' : 'prometheus';
      expect(on(from).filter((name) => on(service?.name ?? '').includes(name))).not.toEqual([]);
    }
    const proxy = serviceOf('proxy').environment['PROXY_INTERNAL'];
    expect(targets).toContain(proxy);
  });

  test('has fixed addresses on the network of the proxy, which is found by its own', () => {
    const edge = services.flatMap(({ networks }) => networks.filter(({ name }) => name === 'edge'));
    const addresses = edge.map(({ address }) => address);
    expect(addresses).not.toContain(undefined);
    expect(new Set(addresses).size).toBe(addresses.length);
  });

  test('reads the files that are there: rules, dashboard, data source, and the time of the last backup', () => {
    const mounted = (name: string) =>
      serviceOf(name).mounts.map(({ from, to }) => [existsSync(from), to] as const);
    expect(mounted('prometheus')).toEqual([[true, '/etc/prometheus']]);
    const { options } = (
      parse(readFileSync(join(root, 'deploy/grafana/provisioning/dashboards/service.yml'), 'utf8')) as {
        providers: { options: { path: string } }[];
      }
    ).providers[0]!;
    expect(mounted('grafana')).toEqual([
      [true, '/etc/grafana/provisioning'],
      [true, `${options.path}/dashboard.json`],
    ]);
    const texts = serviceOf('node-exporter').argv.find((word) => word.includes('textfile.directory='));
    expect(texts?.split('=')[1]).toBe('/backups/metrics');
    for (const name of ['node-exporter', 'postgres', 'backups'])
      expect(serviceOf(name).volumes).toContainEqual(
        expect.objectContaining({ name: 'backups', to: '/backups' }),
      );
  });

  test('does not start without the address of the handbook', () => {
    const { entrypoint = [] } = readRaw(root, variables)['prometheus'] ?? {};
    const start = (RUNBOOKS_URL: string) =>
      execFileSync(
        entrypoint[0] ?? '',
        [...entrypoint.slice(1, 2), entrypoint[2]?.replace('exec prometheus', 'echo') ?? '', 'sh', 'x'],
        {
          env: { PATH: process.env['PATH'], RUNBOOKS_URL },
          stdio: 'pipe',
        },
      ).toString();
    expect(start('https://handbook.example')).toBe('x\n');
    expect(() => start('')).toThrow('see .env.example');
  });
});
