// Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md).
import { readFileSync } from 'node:fs';
import { verifyServiceSignature, verifyStandardWebhook } from './verify-webhook.mjs';

const { SECRETS, SERVICE_SIGNATURE, WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE, NOW } = process.env;
const body = readFileSync(0);
const now = NOW === undefined ? Date.now() / 1000 : Number(NOW);
const secrets = SECRETS.split(' ');
const standard = { id: WEBHOOK_ID, timestamp: WEBHOOK_TIMESTAMP, signature: WEBHOOK_SIGNATURE };
const verified =
  SERVICE_SIGNATURE === undefined
    ? verifyStandardWebhook(body, standard, secrets, now)
    : verifyServiceSignature(body, SERVICE_SIGNATURE, secrets, now);
console.log(verified ? 'verified' : 'refused');
process.exitCode = verified ? 0 : 1;
