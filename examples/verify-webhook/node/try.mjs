// Tries the verifier: the raw body on standard input, the rest in the environment (see ../README.md).
import { readFileSync } from 'node:fs';
import { verifyServiceSignature, verifyStandardWebhook, verifyWithPublicKeys } from './verify-webhook.mjs';

const { SECRETS = '', PUBLIC_KEYS, SERVICE_SIGNATURE, NOW } = process.env;
const { WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE } = process.env;
const body = readFileSync(0);
const now = NOW === undefined ? Date.now() / 1000 : Number(NOW);
const secrets = SECRETS.split(' ');
const standard = { id: WEBHOOK_ID, timestamp: WEBHOOK_TIMESTAMP, signature: WEBHOOK_SIGNATURE };
let verified;
if (SERVICE_SIGNATURE !== undefined) verified = verifyServiceSignature(body, SERVICE_SIGNATURE, secrets, now);
else if (PUBLIC_KEYS === undefined) verified = verifyStandardWebhook(body, standard, secrets, now);
else verified = verifyWithPublicKeys(body, standard, PUBLIC_KEYS.split(' '), now);
console.log(verified ? 'verified' : 'refused');
process.exitCode = verified ? 0 : 1;
