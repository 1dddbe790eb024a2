import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseEnv } from 'node:util';
import { ONE_PARTITION } from '../../dev/temporal-postgres/config';
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

test("Temporal's page is on this machine only, and changes nothing", () => {
  const { ports, environment } = readRaw(root, variables)['temporal-ui'] as Record<string, unknown>;
  expect(ports).toEqual(['127.0.0.1:8233:8080']);
  expect(environment).toMatchObject({ TEMPORAL_DISABLE_WRITE_ACTIONS: 'true' });
});

test("Temporal's dynamic configuration is what the bench measures, and TLS among its services", () => {
  const file = readFileSync(join(root, 'deploy/temporal/dynamic-config.yaml'), 'utf8');
  const rules = parse(file) as Record<string, { value: unknown }[]>;
  const values = Object.fromEntries(Object.entries(rules).map(([name, [rule]]) => [name, rule?.value]));
  expect(values).toEqual({ ...ONE_PARTITION, 'system.enableRingpopTLS': true });
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
