import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { roleOf } from '../../db/postgres/roles';
import { readConfig, SETTING_GROUPS } from '../../runtime/config/config';
import { readEnvironment } from '../../scripts/cluster/units';
import { readCompose } from '../../scripts/rehearsal/compose';

/** What systemd runs on one machine without containers (docs/operations/machine.md) fits together, and is what the compose file runs. */
const root = join(__dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const page = read('docs/operations/machine.md');
const file = (name: string) => read(`deploy/machine/${name}`);
const settings = new Set(Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group)));
const variables = { WEBHOOK_KEYS: `k1:${Buffer.alloc(32).toString('base64')}`, VERSION: 'r1' };
const services = readCompose(
  root,
  new Proxy<Record<string, string>>(variables, {
    get: (known, name) => Reflect.get(known, name) ?? 'secret',
  }),
);
const composed = (name: string) => services.find((one) => one.name === name)!.environment;

/** The settings of a process: its file, and what its unit adds for instance 1 or 2. */
function environmentOf(name: string, instance = ''): Record<string, string> {
  const filled = Object.entries(readEnvironment(join(root, `deploy/machine/${name}.env`))).map(
    ([key, value]) => [
      key,
      value.replace('<WEBHOOK_KEYS>', variables.WEBHOOK_KEYS).replaceAll(/<[A-Z_]+>/g, 'secret'),
    ],
  );
  if (instance === '') return Object.fromEntries(filled);
  const line = /^Environment=(.*)$/m.exec(file(`systemd/quotes-${name}@.service`))?.[1] ?? '';
  const added = line
    .replaceAll('%i', instance)
    .split(' ')
    .map((one) => one.split('='));
  return { ...Object.fromEntries(filled), ...Object.fromEntries(added) };
}

test.each([
  ['api', 'quotes_api', 'api-1'],
  ['worker', 'quotes_worker', 'worker-1'],
  ['ops', 'quotes_ops', 'ops'],
  ['migrate', 'quotes', 'migrate'],
])('%s has the settings of the compose file, and a login of its own', (name, login, service) => {
  const environment = environmentOf(name, name === 'api' || name === 'worker' ? '1' : '');
  expect(Object.keys(environment).filter((key) => !settings.has(key))).toEqual([]);
  expect(new URL(readConfig(environment).DATABASE_URL ?? '').username).toBe(login);
  if (name !== 'migrate') expect(login).toBe(roleOf(name as 'api' | 'worker' | 'ops'));
  // Everything is on loopback, Temporal's page is not there, the release has the build id, and a login has its own name.
  const elsewhere =
    /_HOST$|_SERVER_NAME$|^(TEMPORAL_UI_URL|WORKER_BUILD_ID|OPS_ACTOR|INTERNAL_PORT|WORKER_PORT|API_PORT)$/;
  const names = (one: Record<string, string>) =>
    Object.keys(one)
      .filter((key) => !elsewhere.test(key))
      .toSorted();
  expect(names(environment)).toEqual(names(composed(service)));
});

test('the proxy, Prometheus and the handbook know the ports that the units give', () => {
  const proxy = environmentOf('proxy');
  const targets = Object.fromEntries(
    (
      parse(file('prometheus.yml')) as {
        scrape_configs: { job_name: string; static_configs: [{ targets: string[] }] }[];
      }
    ).scrape_configs.map((job) => [job.job_name, job.static_configs[0].targets]),
  );
  for (const [nth, instance] of ['1', '2'].entries()) {
    const { API_PORT, INTERNAL_PORT } = environmentOf('api', instance);
    expect(proxy[`API_${instance}`]).toBe(`127.0.0.1:${API_PORT}`);
    expect(proxy[`API_${instance}_READY`]).toBe(INTERNAL_PORT);
    expect(proxy[`API_${instance}_INTERNAL`]).toBe(`127.0.0.1:${INTERNAL_PORT}`);
    expect(targets['pfqs-api']?.[nth]).toBe(`127.0.0.1:${INTERNAL_PORT}`);
    const { WORKER_PORT } = environmentOf('worker', instance);
    expect(targets['pfqs-worker']?.[nth]).toBe(`127.0.0.1:${WORKER_PORT}`);
    for (const port of [INTERNAL_PORT, WORKER_PORT]) expect(page).toContain(`ready ${port}`);
  }
  expect(targets['pfqs-proxy']).toEqual([proxy['PROXY_INTERNAL']]);
  expect(Object.keys(proxy).toSorted()).toEqual(Object.keys(composed('proxy')).toSorted());
  expect(environmentOf('api').TRUSTED_PROXIES).toBe('127.0.0.1');
  expect(environmentOf('worker').TEMPORAL_ADDRESS).toBe(`${environmentOf('temporal').TEMPORAL_BIND}:7233`);
});

test('Prometheus asks under the names of jobs that the alerts use', () => {
  const jobs = (path: string) =>
    (parse(read(path)) as { scrape_configs: { job_name: string }[] }).scrape_configs.map(
      (job) => job.job_name,
    );
  expect(jobs('deploy/machine/prometheus.yml')).toEqual(jobs('deploy/prometheus/prometheus.yml'));
});

test('Postgres and Redis have the settings of the compose file', () => {
  const { argv } = services.find(({ name }) => name === 'postgres')!;
  const inCompose = argv.filter((word) => /^\w+=/.test(word)).map((word) => word.split(/=(.*)/s).slice(0, 2));
  const own = file('postgres.conf')
    .split('\n')
    .filter((line) => /^\w/.test(line))
    .map((line) => line.split(/ = (.*)/s).slice(0, 2));
  const others = (list: string[][]) =>
    Object.fromEntries(list.filter(([name]) => name !== 'archive_command'));
  expect(others(own)).toEqual(others(inCompose));
  expect(own.map(([name]) => name)).toContain('archive_command');
  const redis = services.find(({ name }) => name === 'redis')!.argv.join(' ');
  for (const [, name, value] of file('redis.conf').matchAll(/^(\w+) "?([^"\n]*)"?$/gm))
    if (name !== 'requirepass') expect(redis).toContain(`--${name} ${value}`);
});

test('every unit is one that the handbook starts, and a service that goes on is started again', () => {
  for (const name of readdirSync(join(root, 'deploy/machine/systemd'))) {
    expect(page).toContain(name.replace(/@?\.service$/, '').replace(/^(quotes-(?:api|worker))$/, '$1@1'));
    const text = file(`systemd/${name}`);
    if (name.endsWith('.timer') || text.includes('Type=oneshot')) continue;
    expect({ name, text }).toEqual({
      name,
      text: expect.stringMatching(/^User=[a-z-]+\n[^]*^Restart=always$/m),
    });
  }
});

test('the handbook fills in every blank', () => {
  const loop = /for each in ((?:[A-Z_]+ ?)+); do\n +export/.exec(page)?.[1] ?? '';
  const named = [...loop.split(' ').map((each) => `<${each}_PASSWORD>`), '<WEBHOOK_KEYS>', '<RUNBOOKS_URL>'];
  const blanks = readdirSync(join(root, 'deploy/machine'), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap(({ name }) => [...file(name).matchAll(/<[A-Z_]+>/g)].map(([blank]) => blank));
  expect(new Set(blanks)).toEqual(new Set(named));
});
