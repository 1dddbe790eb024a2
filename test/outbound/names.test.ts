import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import { checkRegistrationTarget } from '../../outbound/sender';
import { openConnection } from '../../outbound/connect';
import { createResolver } from '../../outbound/names';
import { startDnsServer } from '../support/dns-server';
import {
  certificateFor,
  closeAll,
  closeLater,
  HOST,
  post,
  startReceiver,
  startTcpServer,
  testSender,
} from './partner';

afterEach(closeAll);

/** An endpoint that takes what it gets. @param options of the sender to it, which may use its port */
const yes = async (
  options: Parameters<typeof testSender>[0] = {},
  at: Parameters<typeof startReceiver>[1] = {},
) => {
  const receiver = closeLater(await startReceiver((_request, response) => response.end(), at));
  return { receiver, sender: await testSender({ ports: [receiver.port], ...options }) };
};

const DELIVERED = { outcome: { kind: 'delivered' }, address: '127.0.0.1' };

test.each([
  ['private', ['10.1.2.3']],
  ['loopback', ['127.0.0.1']],
  ['loopback in IPv6', ['::1']],
  ['the metadata service', ['169.254.169.254']],
  ['IPv4-mapped', ['::ffff:127.0.0.1']],
  ['public and private', ['1.1.1.1', '127.0.0.1']],
  ['public, and private in the other family', ['1.1.1.1', '::1']],
])('a name that resolves to %s is refused before any connection', async (_what, addresses) => {
  const { receiver, sender } = await yes({ allowedCidrs: [], dns: () => addresses });
  const result = await sender.send(post(receiver.url));
  expect(result.outcome).toMatchObject({ kind: 'failed', failure: 'blocked_address', httpStatus: null });
  expect(result.address).toBeNull();
  expect(receiver.connections()).toBe(0);
});

test.each([
  'https://127.0.0.1',
  'https://2130706433',
  'https://[::1]',
  'https://[::ffff:127.0.0.1]',
  'https://localhost.',
  `https://${HOST}.`,
  `https://user:secret@${HOST}`,
  `http://${HOST}`,
])('%s is refused at the send, too, without a question to DNS', async (origin) => {
  const { receiver, sender } = await yes();
  const { outcome } = await sender.send(post(`${origin}:${receiver.port}/`));
  expect(outcome).toMatchObject({ kind: 'failed', failure: 'blocked_address' });
  expect(sender.questions).toEqual([]);
  expect(receiver.connections()).toBe(0);
});

test('a port that is not allowed is refused at the send, too', async () => {
  const { receiver, sender } = await yes({ ports: [] });
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ failure: 'blocked_address' });
  expect(receiver.connections()).toBe(0);
});

test('the address connected to is the one that was checked, however the name changes', async () => {
  let asked = 0;
  const { receiver, sender } = await yes({
    allowedCidrs: ['127.0.0.1/32'],
    dns: (_name, type) => {
      if (type === 'A') asked += 1;
      return asked === 1 ? ['127.0.0.1'] : ['127.0.0.2'];
    },
  });
  const { receiver: inside } = await yes({}, { address: '127.0.0.2', port: receiver.port });
  expect(await sender.send(post(receiver.url))).toMatchObject(DELIVERED);
  expect(asked).toBe(1);
  sender.close();
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ failure: 'blocked_address' });
  expect(inside.connections()).toBe(0);
});

test('a socket that is connected to another address than allowed is closed before a byte is written', async () => {
  let bytes = 0;
  const { server, port } = await startTcpServer((socket) =>
    socket.on('data', (chunk) => (bytes += chunk.length)),
  );
  const options = {
    hostname: HOST,
    port,
    addresses: ['127.0.0.1'],
    isAllowed: () => false,
    secureContext: createSecureContext(),
    connectMs: 1_000,
  };
  const closed = once(server, 'connection').then(([socket]) => once(socket, 'close'));
  await expect(openConnection(options, new AbortController().signal)).rejects.toMatchObject({
    failure: 'blocked_address',
  });
  await closed;
  expect(bytes).toBe(0);
});

test('an address that this machine cannot reach is a failure to connect, and costs the others nothing', async () => {
  const { receiver, sender: both } = await yes({
    dns: () => ['100::1', '127.0.0.1'],
    allowedCidrs: ['100::/64', '127.0.0.0/8'],
  });
  expect(await both.send(post(receiver.url))).toMatchObject(DELIVERED);
  const only = { dns: () => ['100::1'], allowedCidrs: ['100::/64'], timeouts: { connectMs: 300 } };
  const six = await testSender({ ports: [receiver.port], ...only });
  expect((await six.send(post(receiver.url))).outcome).toMatchObject({ failure: 'connect' });
});

test.each([
  ['NXDOMAIN', { rcode: 3 }, 'ENOTFOUND'],
  ['SERVFAIL', { rcode: 2 }, 'ESERVFAIL'],
  ['REFUSED', { rcode: 5 }, 'EREFUSED'],
  ['no address', [], 'ENODATA'],
] as const)('%s is a failure of DNS', async (_what, answer, detail) => {
  const sender = await testSender({ dns: () => answer, timeouts: { dnsMs: 10_000 } });
  const result = await sender.send(post(`https://${HOST}/hook`));
  expect(result).toMatchObject({ outcome: { kind: 'failed', failure: 'dns', httpStatus: null }, detail });
});

test('one family that fails, or never answers, does not stop the other', async () => {
  for (const answer of [{ rcode: 2 }, { rcode: 3 }, 'silence'] as const) {
    const dns = (_name: string, type: string) => (type === 'A' ? ['127.0.0.1'] : answer);
    const { receiver, sender } = await yes({ dns });
    expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'delivered' });
  }
});

test('a name that takes its time resolves, though the server was fast for all others', async () => {
  let readyAtMs: number | undefined;
  const dns = async (name: string) => {
    if (name.startsWith('slow')) {
      // As a recursive server does: it looks for the answer once, and gives it to whoever asks again.
      readyAtMs ??= performance.now() + 2_500;
      await delay(readyAtMs - performance.now());
    }
    return ['127.0.0.1'];
  };
  const { receiver, sender } = await yes({ dns }, { tls: await certificateFor('*.partner.test') });
  const to = (name: string) => sender.send(post(`https://${name}.partner.test:${receiver.port}/`));
  for (let nth = 0; nth < 20; nth += 1)
    expect((await to(`fast${nth}`)).outcome).toMatchObject({ kind: 'delivered' });
  expect((await to('slow')).outcome).toMatchObject({ kind: 'delivered' });
});

test('no DNS server at all is our fault, and is thrown', async () => {
  const dns = await startDnsServer(() => []);
  await dns.close();
  const sender = await testSender({ resolver: createResolver([dns.address]) });
  await expect(sender.send(post(`https://${HOST}/`))).rejects.toMatchObject({ code: 'ECONNREFUSED' });
});

test('names of our own are not asked for, and their addresses are guarded as any', async () => {
  const hosts = new Map([
    [HOST, ['127.0.0.1']],
    ['receiver.localhost', ['127.0.0.1']],
    ['bad.localhost', ['127.0.0.1', '10.0.0.1']],
  ]);
  const { receiver, sender } = await yes({ hosts, dns: () => ({ rcode: 3 }) });
  expect((await sender.send(post(receiver.url))).outcome).toMatchObject({ kind: 'delivered' });
  const to = (name: string) => sender.send(post(`https://${name}:${receiver.port}/`));
  // Connected to, but the certificate is for another name.
  expect((await to('receiver.localhost')).outcome).toMatchObject({ failure: 'tls' });
  expect((await to('bad.localhost')).outcome).toMatchObject({ failure: 'blocked_address' });
  expect((await to('other.localhost')).outcome).toMatchObject({ failure: 'blocked_address' });
  expect(sender.questions).toEqual([]);
});

describe('at registration', () => {
  const check = async (url: string, addresses: readonly string[] | { rcode: number }) => {
    const server = closeLater(await startDnsServer(() => addresses));
    const resolver = createResolver([server.address]);
    return checkRegistrationTarget(url, { allowedCidrs: [], allowedPorts: [], resolver });
  };

  test('a public name is accepted', async () => {
    const hostname = 'hooks.partner.test';
    const accepted = { ok: true, url: `https://${hostname}/in`, hostname };
    expect(await check('https://Hooks.partner.test/in', ['1.1.1.1', '2606:4700::1111'])).toMatchObject(
      accepted,
    );
  });

  test.each([
    ['https://hooks.partner.test/in', ['1.1.1.1', '10.0.0.1'], 'blocked_address', '10.0.0.1 is not a public'],
    ['https://hooks.partner.test/in', { rcode: 3 }, 'dns', 'does not resolve (ENOTFOUND)'],
    ['https://127.0.0.1/', ['1.1.1.1'], 'ip_address', 'IP address'],
    ['https://hooks.partner.test:8443/', ['1.1.1.1'], 'port', '443'],
  ] as const)('%s with %j is refused: %s', async (url, addresses, reason, message) => {
    const refused = { ok: false, reason, message: expect.stringContaining(message) };
    expect(await check(url, addresses)).toMatchObject(refused);
  });
});
