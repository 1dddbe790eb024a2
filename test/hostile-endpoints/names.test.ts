import { networkInterfaces } from 'node:os';
import { checkRegistrationTarget } from '../../outbound/sender';
import { createResolver } from '../../outbound/connect';
import { closeLater } from '../outbound/partner';
import { startDnsServer } from '../support/dns-server';
import { HERE, hostileRows, receiver, type Seen } from './scene';

const { row, scene } = hostileRows();

/** Every attempt was refused before any connection, and told to the operators with the endpoint's id. */
async function expectBlocked(seen: Seen, detail: string): Promise<void> {
  expect(seen).toMatchObject({
    state: 'failed',
    reason: 'exhausted',
    words: ['blocked_address', 'blocked_address', 'blocked_address'],
  });
  for (const attempt of seen.attempts)
    expect(attempt).toMatchObject({ address: null, status: null, answer: expect.stringContaining(detail) });
  // On a busy machine there are others, on a start that had to be repeated.
  const alerts = seen.warnings.filter((line) => line.includes('leads to where webhooks may not go'));
  expect(alerts).toHaveLength(3);
  expect(alerts[0]).toMatch(/"endpointId":"whe_/);
  expect(await scene().counted('blocked_address')).toBeGreaterThanOrEqual(3);
  expect(scene().trap.connections()).toBe(0);
}

const [own] = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
for (const addresses of [
  ['127.0.0.1'],
  ['169.254.169.254'],
  ['fc00::1'],
  ['::ffff:127.0.0.1'],
  [own?.address ?? '::1'],
  ['1.1.1.1', '::1'],
  [HERE, '127.0.0.1'],
]) {
  row(
    `a name that resolves to ${addresses.join(' and ')} is \`blocked_address\`, alerts, and is never connected to`,
    async ({ host, register, resolve }, { trap }) => {
      resolve(() => addresses);
      await register(`https://${host}:${trap.port}/`);
    },
    (seen) => expectBlocked(seen, 'is not a public address'),
  );
}

const rebound = { requests: 0 };
row(
  'a name that is rebound is checked at each connection, and the address connected to is the checked one',
  async ({ host, register, resolve }) => {
    const { port } = await receiver((_request, response) => {
      rebound.requests += 1;
      response.writeHead(500).end();
    });
    // By turns: the questions of an attempt see one of the two, the next attempt the other.
    resolve((type) => (type === 'AAAA' ? [] : [rebound.requests === 0 ? HERE : '127.0.0.1']));
    await register(`https://${host}:${port}/`);
  },
  (seen) => {
    expect(seen.words).toEqual(['http_status', 'blocked_address', 'blocked_address']);
    expect(seen.attempts.map(({ address }) => address)).toEqual([HERE, null, null]);
    expect(rebound.requests).toBe(1);
  },
);

/** The fault that registration refuses a URL with. The connector would reach the trap if it accepted the URL. */
const REFUSED: readonly (readonly [45 | 49, string, (port: number) => string])[] = [
  [45, 'ip_address', (port) => `https://127.0.0.1:${port}/`],
  [45, 'ip_address', (port) => `https://2130706433:${port}/`],
  [45, 'trailing_dot', (port) => `https://localhost.:${port}/`],
  [45, 'local_name', (port) => `https://localhost:${port}/`],
  [49, 'user_info', (port) => `https://user:secret@n1.partner.test:${port}/`],
  [49, 'query', (port) => `https://n1.partner.test:${port}/?a=b`],
  [49, 'not_https', (port) => `http://n1.partner.test:${port}/`],
];
for (const [at, reason, url] of REFUSED) {
  row(
    `row ${at}: ${url(8443)} is refused at registration, and a row that holds it is refused by the connector`,
    async ({ register }, { trap }) => register(url(trap.port)),
    async (seen, { trap }) => {
      const dns = closeLater(await startDnsServer(() => ['1.1.1.1']));
      const resolver = createResolver([dns.address]);
      const rules = { allowedCidrs: [], allowedPorts: [trap.port], resolver };
      expect(await checkRegistrationTarget(url(trap.port), rules)).toMatchObject({ ok: false, reason });
      expect(dns.questions).toEqual([]);
      await expectBlocked(seen, reason);
    },
  );
}

test('a port other than 443 is refused at registration, unless configuration allows it', async () => {
  const dns = closeLater(await startDnsServer(() => ['1.1.1.1']));
  const check = (allowedPorts: readonly number[]) =>
    checkRegistrationTarget('https://n1.partner.test:8443/', {
      allowedCidrs: [],
      allowedPorts,
      resolver: createResolver([dns.address]),
    });
  expect(await check([])).toMatchObject({ ok: false, reason: 'port' });
  expect(await check([8443])).toMatchObject({ ok: true });
});
