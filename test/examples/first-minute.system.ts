import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installPackage, runScript } from '../../clients/typescript/test/built-package';
import { freePort } from '../../dev/ports';
import { STORIES } from '../../domain/application-states';
import { useApi } from '../support/api';
import { startNode, type ProjectProcess } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { createTestTls } from '../../testbed/tls';

/** What a partner's developer does on the first morning, with a sandbox key and the address: no endpoint, no e-mail, no tunnel. */
const api = useApi();
const folder = runDirectory('minute');
let listening: ProjectProcess;
let receiver: ProjectProcess;
beforeAll(() => installPackage(folder), 120_000);
// Before the API closes, which would wait for what is asked of it.
afterEach(() => Promise.all([listening, receiver].map((one) => one.end('SIGKILL'))));

test('from a key and the address to a verified, completed application in under a minute', async () => {
  const tls = await createTestTls();
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const caFile = file('ca.pem', `${api.ca}\n${tls.ca}`);
  const files = { TLS_CERT_FILE: file('cert.pem', tls.cert), TLS_KEY_FILE: file('key.pem', tls.key) };
  const [key, address, port] = [api.keys.test, `https://127.0.0.1:${api.port}`, await freePort()];

  const beganMs = performance.now();
  const command = [
    'node_modules/.bin/partner-finance',
    'listen',
    '--forward-to',
    `https://127.0.0.1:${port}/`,
  ];
  listening = startNode(command, {
    cwd: folder,
    environment: { API_KEY: key, BASE_URL: address, NODE_EXTRA_CA_CERTS: caFile },
  });
  await listening.waitFor(/^Secret: whsec_\S+$/m);
  const [, secret = ''] = /^Secret: (\S+)$/m.exec(listening.output()) ?? [];
  receiver = startNode(['receive.mjs'], {
    cwd: join(__dirname, '../../examples/verify-webhook/node'),
    environment: { ...files, PORT: String(port), WEBHOOK_SECRETS: secret },
  });
  await receiver.waitFor(/listening on port/);
  const code = `import { createClient } from 'partner-finance-client';
    const client = createClient(JSON.parse(process.env.INPUT));
    const { service_quote_id } = await client.quote({ merchant_id: 'M000001', loan_amount: '900.00', merchant_finance_url: 'https://shop.example/finance' });
    const { credit_application_id } = await client.simulateApplication({ service_quote_id, story: 'completed' });
    console.log(JSON.stringify(credit_application_id));`;
  const input = { baseUrl: address, apiKey: key, partnerId: api.partnerId };
  const id = await runScript(folder, code, input, caFile);
  await receiver.waitFor(/ completed$/m, 60_000);
  await listening.waitFor(/\.completed -> /);
  const seconds = (performance.now() - beganMs) / 1_000;

  // The receiver stores what it has verified, and only what is newer than the last.
  const steps = ['created', ...STORIES.completed].map((status, at) => `${String(id)} ${at + 1} ${status}`);
  expect(receiver.stdout().match(/^app_.*$/gm)).toEqual(steps);
  const answers = [...listening.stdout().matchAll(/ (\d+) credit_application\.\w+ -> (\d+) in /g)];
  expect(answers.map(([, sequence, status]) => `${sequence} ${status}`)).toEqual(
    steps.map((_, at) => `${at + 1} 204`),
  );
  process.stdout.write(`From a key to a verified application that is completed: ${seconds.toFixed(1)} s\n`);
  expect(seconds).toBeLessThan(60);
});
