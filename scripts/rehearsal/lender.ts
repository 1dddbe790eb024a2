import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Service } from './compose';
import type { StandIn } from './stand-in';

/** A container of a lender integration: on the network `lenders`, with Node. The compose file has none. */
export function lenderIntegration(services: readonly Service[]): Service {
  const model = services.find(({ name }) => name === 'certificates');
  if (model === undefined) throw new Error('there is no service certificates');
  const networks = [{ name: 'lenders', address: undefined }];
  return { ...model, name: 'lender', networks, volumes: [], environment: {}, argv: [] };
}

/** Run by the lender integration. Arguments: service key, then `host:port` of what it must not reach. */
const PROGRAM = `
const https = require('node:https');
const net = require('node:net');
const [, key, ...others] = process.argv;
const call = (method, path, body) => new Promise((resolve, reject) => {
  const request = https.request({ host: '172.31.251.2', port: 8444, method, path,
    headers: { authorization: 'Bearer ' + key, ...(body && { 'content-type': 'application/json' }) } }, (answer) => {
    let text = '';
    answer.on('data', (chunk) => (text += chunk)).on('end', () => resolve([answer.statusCode, text]));
  });
  request.on('error', reject).end(body);
});
const reaches = (to) => new Promise((resolve) => {
  const at = to.lastIndexOf(':');
  const socket = net.connect({ host: to.slice(0, at), port: Number(to.slice(at + 1)), timeout: 700 });
  for (const [event, yes] of [['connect', true], ['error', false], ['timeout', false]])
    socket.once(event, () => { resolve(yes); socket.destroy(); });
});
(async () => {
  const paths = {};
  for (const path of ['/health', '/ready', '/metrics', '/v1/finance-quote', '/internal/v1/../../metrics', '/openapi.json'])
    paths[path] = (await call('GET', path))[0];
  const opened = await call('POST', '/internal/v1/credit-applications', JSON.stringify({ lender: 'lender_a', lender_reference: 'x' }));
  const reached = [];
  for (const to of others) if (await reaches(to)) reached.push(to);
  console.log(JSON.stringify({ paths, opened, reached }));
})();
`;

/** Uses the service as a lender integration does, and tries what one must not reach. @throws when that is not as it should be. */
export async function tryAsLender(what: {
  engine: StandIn;
  lender: Service;
  services: readonly Service[];
  operate: (...args: string[]) => Promise<Record<string, string>>;
  authority: string;
  directory: string;
}): Promise<void> {
  const { engine, lender, services, operate, directory } = what;
  const { key = '' } = await operate(
    'service-keys',
    'create',
    '--name',
    'Gateway',
    '--lender',
    'lender_a',
    '--environment',
    'live',
  );
  const ca = join(directory, 'authority.pem');
  writeFileSync(ca, what.authority);
  const ports = [5432, 6379, 6933, 7233, 8080, 8081, 8404];
  const others = services
    .filter(({ name }) => name !== 'proxy')
    .flatMap((service) => engine.addressesOf(service))
    .flatMap((address) => ports.map((port) => `${address}:${port}`));
  let out = '';
  const code = await engine.start(lender, {
    argv: ['node', '-e', PROGRAM, key, ...others, '172.31.251.2:8404', '172.31.250.2:8404'],
    environment: { NODE_EXTRA_CA_CERTS: '/run/authority.pem' },
    mounts: [{ from: ca, to: '/run/authority.pem' }],
    onOutput: (text) => (out += text),
  }).ended;
  if (code !== 0) throw new Error(`the lender integration ended with ${code}`);
  console.log(`as a lender integration, of ${others.length + 2} addresses and ports: ${out.trim()}`);
  const seen = JSON.parse(out) as {
    paths: Record<string, number>;
    opened: [number, string];
    reached: string[];
  };
  const { '/openapi.json': document, ...refused } = seen.paths;
  const refusedAll = Object.values(refused).every((status) => status === 404);
  if (!refusedAll || document !== 200 || seen.opened[0] !== 400 || seen.reached.length > 0)
    throw new Error('a lender integration sees what it should not, or not what it should');
}
