import { createHmac, randomBytes } from 'node:crypto';
import { generateKey } from '../../db/keys';
import { generateKeyPair } from '../../db/endpoints/key-pairs';
import { generateWebhookSecret } from '../../db/endpoints/secrets';
import { findLeaks } from './emitted';
import { newKeyRingText } from './notifications';
import { testServerUrl } from './test-server';

const digest = (encoding: 'hex' | 'base64') =>
  createHmac('sha256', randomBytes(32)).update('a body').digest(encoding);

/** The search of a run must know the form that each secret has today. */
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
