// A receiver of the webhooks of the Partner Finance Quote Service. Node 18 or later, no dependencies.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { readSecrets, verifyStandardWebhook } from './verify-webhook.mjs';

const { WEBHOOK_SECRETS, TLS_CERT_FILE = '', TLS_KEY_FILE = '', PORT = '443' } = process.env;
const secrets = secretsOrExit();
/** No event is larger than 20 KB. */
const MOST_BYTES = 65_536;

/** The highest sequence of each application. Keep it in your database, and raise it in the transaction that stores the event. */
const highest = new Map();

/** Stores what is new. Tests, repeated events and late events are not. */
function store({ event_type, sequence, data }) {
  const id = data.credit_application_id;
  if (event_type === 'credit_application.test' || sequence <= (highest.get(id) ?? 0)) return;
  highest.set(id, sequence);
  console.log(`${id} ${sequence} ${data.status}`);
}

/** A receiver without a secret would have to trust everybody, so it does not start. */
function secretsOrExit() {
  try {
    return readSecrets(WEBHOOK_SECRETS);
  } catch ({ message }) {
    console.error(`WEBHOOK_SECRETS: ${message}`);
    process.exit(1);
  }
}

/** The bytes as they arrived. @throws when there are too many, or the sender has gone. */
async function rawBody(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error('the body is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

async function receive(request) {
  const body = await rawBody(request);
  const header = (name) => request.headers[`webhook-${name}`] ?? '';
  const headers = { id: header('id'), timestamp: header('timestamp'), signature: header('signature') };
  if (!verifyStandardWebhook(body, headers, secrets)) return 401;
  store(JSON.parse(body.toString()));
  return 204;
}

createServer({ cert: readFileSync(TLS_CERT_FILE), key: readFileSync(TLS_KEY_FILE) }, (request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    (error) => {
      console.error(error);
      // Not stored: it comes again.
      response.writeHead(500).end();
    },
  );
}).listen(Number(PORT), () => console.log(`listening on port ${PORT}`));
