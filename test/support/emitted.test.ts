import { createHmac, randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { generateKey } from '../../db/keys';
import { generateKeyPair } from '../../db/endpoints/key-pairs';
import { generateWebhookSecret } from '../../db/endpoints/secrets';
import { findLeaks, searchEmitted } from './emitted';
import { newKeyRingText } from './notifications';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { testServerUrl } from './test-server';

const digest = (encoding: 'hex' | 'base64') =>
  createHmac('sha256', randomBytes(32)).update('a body').digest(encoding);

const SECRETS: Record<string, () => string> = {
  'API key': () => generateKey('live'),
  'service key': () => generateKey('service'),
  'webhook secret': generateWebhookSecret,
  'webhook private key': () => generateKeyPair().privateKey,
  'Service-Signature': () => `v1=${digest('hex')}`,
  'webhook-signature': () => `v1,${digest('base64')}`,
  'encryption key': newKeyRingText,
  'database password': testServerUrl,
};

test.each(Object.keys(SECRETS))('a line with a real %s is found, and not repeated', (kind) => {
  const secret = SECRETS[kind]?.() ?? '';
  const leaks = findLeaks(`{"msg":"fine"}\n{"msg":"request","value":"${secret}"}\n`);
  expect(leaks).toContainEqual(expect.stringContaining(`${kind}: {"msg":"request"`));
  expect(leaks.join()).not.toContain(secret);
});

test('ids, hashes and masked keys are no secrets', () => {
  const line = {
    keyId: 'key_01JD',
    requestId: 'rq_6d9e',
    DATABASE_URL: 'set',
    key: 'sk_test_…abcd',
    sha: digest('hex'),
  };
  expect(findLeaks(JSON.stringify(line))).toEqual([]);
});

test('a planted secret fails the search of a run, by its source', async () => {
  const directory = await temporaryDirectory('emitted');
  const folder = join(directory, 'emitted');
  mkdirSync(folder);
  writeFileSync(join(folder, 'api-log-0a1b'), '{"msg":"listening"}\n');
  expect(searchEmitted(folder)).toEqual({ 'api-log': 20 });
  writeFileSync(join(folder, 'metrics-0c'), `pfqs_x{key="${generateKey('sandbox')}"} 1\n`);
  expect(() => searchEmitted(folder)).toThrow('metrics: API key: pfqs_x{key="[here]');
  await removeDirectory(directory);
});
