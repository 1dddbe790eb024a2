// Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md).
import { readFileSync } from 'node:fs';
import {
  readPublicKeys,
  readSecrets,
  verifyServiceSignature,
  verifyStandardWebhook,
  verifyWithPublicKeys,
} from './verify-webhook.mjs';

const { SECRETS, PUBLIC_KEYS, SERVICE_SIGNATURE, NOW } = process.env;
const { WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE } = process.env;
const body = readFileSync(0);
const now = NOW === undefined ? Date.now() / 1000 : Number(NOW);
const standard = { id: WEBHOOK_ID, timestamp: WEBHOOK_TIMESTAMP, signature: WEBHOOK_SIGNATURE };
let verified;
if (SERVICE_SIGNATURE !== undefined)
  verified = verifyServiceSignature(body, SERVICE_SIGNATURE, readSecrets(SECRETS), now);
else if (PUBLIC_KEYS === undefined)
  verified = verifyStandardWebhook(body, standard, readSecrets(SECRETS), now);
else verified = verifyWithPublicKeys(body, standard, readPublicKeys(PUBLIC_KEYS), now);
console.log(verified ? 'verified' : 'refused');
process.exitCode = verified ? 0 : 1;
