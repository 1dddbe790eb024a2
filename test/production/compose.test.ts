import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { SERVER_VERSION } from '../../dev/temporal-postgres/executables';
import { SETTING_GROUPS } from '../../runtime/config/settings';
import { composeServices } from '../support/compose-file';

/** What a container engine does not notice in docker-compose.yml; all else is tested in one (test/containers). */
const root = join(__dirname, '../..');
const services = Object.entries(composeServices());

test('server and schema tool of Temporal are of the version that benches run', () => {
  const images = services
    .map(([, { image }]) => image)
    .filter((image) => /temporalio\/(server|admin-tools)/.test(image));
  expect(images.map((image) => image.split(':')[1])).toEqual([SERVER_VERSION, SERVER_VERSION]);
});

test('no secret stands in the file or the example of its settings', () => {
  const without = readFileSync(join(root, 'docker-compose.yml'), 'utf8').replaceAll(/\$\{[^}]+\}/g, '');
  expect(without).not.toMatch(/password: *['"]?\w|postgres:\/\/\w+:\w|whsec_|sk_(live|test)_/i);
  expect(Object.values(parseEnv(readFileSync(join(root, '.env.example'), 'utf8'))).join('')).toBe('');
});

test('compose names each setting of the example that has no value and may not stay empty', () => {
  const [file, example] = ['docker-compose.yml', '.env.example'].map((name) =>
    readFileSync(join(root, name), 'utf8'),
  );
  const obligatory = (example ?? '')
    .split('\n\n')
    .filter((paragraph) => !paragraph.includes('May stay empty'))
    .flatMap((paragraph) => Object.keys(parseEnv(paragraph)));
  expect(obligatory).toHaveLength(11);
  expect(obligatory.filter((name) => !file?.includes(`\${${name}:?see .env.example}`))).toEqual([]);
});

test('our processes are given no setting that the service does not know', () => {
  const known = new Set(Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group)));
  const ours = services.filter(([, { image }]) => image.startsWith('partner-finance-quote-service'));
  const given = ours.flatMap(([, { environment }]) => Object.keys(environment ?? {}));
  expect(given).toContain('SHUTDOWN_DELAY_MS');
  expect(given.filter((name) => !known.has(name))).toEqual([]);
});
