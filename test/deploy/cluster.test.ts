import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { readServers } from '../../db/postgres/driver/servers';
import { readConfig } from '../../runtime/config/config';
import { SETTING_GROUPS } from '../../runtime/config/settings';
import { readEnvironment, readUnit } from '../../scripts/cluster/units';
import { runDirectory } from '../../testbed/temporary-directory';
import { createTestTls } from '../../testbed/tls';
import { writeFile } from 'node:fs/promises';
import { readExpression, type Rule } from './rules';

const folder = join(__dirname, '../../deploy/cluster');
const handbook = readFileSync(join(__dirname, '../../docs/operations/cluster.md'), 'utf8');
const settings = new Set(Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group)));
const directory = runDirectory('cluster-files');

beforeAll(async () => writeFile(join(directory, 'ca.pem'), (await createTestTls()).ca));

test.each(['api.env', 'worker.env', 'migrate.env', 'ops.env'])('%s: its settings exist and fit', (file) => {
  const environment = Object.fromEntries(
    Object.entries(readEnvironment(join(folder, file))).map(([name, value]) => [
      name,
      value
        .replace('<WEBHOOK_KEYS>', `k1:${Buffer.alloc(32).toString('base64')}`)
        .replace('<ADDRESS>', '10.0.0.11')
        .replaceAll(/<[A-Z_]+>/g, 'secret')
        .replace('/srv/quotes/etc/quotes/database-ca.pem', join(directory, 'ca.pem')),
    ]),
  );
  expect(Object.keys(environment).filter((name) => !settings.has(name))).toEqual([]);
  const { DATABASE_URL = '' } = readConfig(environment);
  expect(readServers(DATABASE_URL)).toMatchObject({
    leaderOnly: true,
    servers: [
      { host: '10.0.0.11', port: 5432 },
      { host: '10.0.0.12', port: 5432 },
    ],
  });
});

test('every unit has a user and a command, and is started again whenever it ends', () => {
  for (const name of ['etcd', 'patroni', 'redis', 'temporal', 'api', 'worker', 'proxy'] as const) {
    const { user, argv } = readUnit(name);
    expect([user, argv[0]]).not.toContain('');
    expect(readFileSync(join(folder, `systemd/quotes-${name}.service`), 'utf8')).toMatch(/^Restart=always$/m);
  }
});

test('the handbook names every file', () => {
  const files = readdirSync(folder).filter((name) => name !== 'systemd');
  expect(files).not.toEqual([]);
  expect(files.filter((name) => !handbook.includes(`\`${name}\``))).toEqual(['alerts.yml']);
});

test('every alert is PromQL, and the handbook says what to do', () => {
  const { groups } = parse(readFileSync(join(folder, 'alerts.yml'), 'utf8')) as {
    groups: { rules: Rule[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.length).toBeGreaterThan(3);
  for (const { alert, expr } of rules) {
    expect(readExpression(expr).metrics).not.toEqual([]);
    expect(handbook).toContain(`\`${alert}\``);
  }
});
