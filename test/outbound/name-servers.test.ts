import { renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createResolver } from '../../outbound/names';
import { checkRegistrationTarget } from '../../outbound/sender';
import { startDnsServer, type DnsAnswer } from '../support/dns-server';
import { runDirectory } from '../../testbed/temporary-directory';
import { closeAll, closeLater, HOST, post, startReceiver, testSender } from './partner';

afterEach(closeAll);

const server = async (answer: DnsAnswer) => closeLater(await startDnsServer(() => answer));
const HERE = ['127.0.0.1'];

/** A server that is gone: nothing listens at its port. */
async function gone() {
  const dns = await startDnsServer(() => []);
  await dns.close();
  return dns;
}

const lines = (...servers: readonly { address: string }[]) =>
  `# made for a test\nsearch partner.test\noptions ndots:5 timeout:30\n${servers.map(({ address }) => `nameserver ${address}\n`).join('')}`;

/** A sender whose resolver reads this file, and an endpoint at HOST that accepts everything. */
async function sending(source: string | readonly string[]) {
  const receiver = closeLater(await startReceiver((_request, response) => response.end()));
  const resolver = createResolver(source);
  closeLater({ close: () => resolver.cancel() });
  const sender = await testSender({ ports: [receiver.port], resolver });
  return { send: () => sender.send(post(receiver.url)), resolver };
}

const file = () => join(runDirectory('resolv'), 'resolv.conf');

const BROKEN = [
  ['answers SERVFAIL', () => server({ rcode: 2 })],
  ['answers REFUSED', () => server({ rcode: 5 })],
  ['answers NOTIMP', () => server({ rcode: 4 })],
  ['answers FORMERR', () => server({ rcode: 1 })],
  ['is silent', () => server('silence')],
  ['is gone', gone],
] as const;

test.each(BROKEN)('a second server is asked when the first %s', async (_what, first) => {
  const [bad, good] = [await first(), await server(HERE)];
  const path = file();
  writeFileSync(path, lines(bad, good));
  const { send } = await sending(path);
  expect((await send()).outcome).toMatchObject({ kind: 'delivered' });
  const asked = bad.questions.length;
  // The next look-up begins with the server that answered.
  expect((await send()).outcome).toMatchObject({ kind: 'delivered' });
  expect(bad.questions).toHaveLength(asked);
});

test.each(BROKEN)('a file that changes is read again: the old server %s', async (_what, first) => {
  const [bad, good] = [await first(), await server(HERE)];
  const path = file();
  writeFileSync(path, lines(bad));
  const { send, resolver } = await sending(path);
  expect(resolver.servers()).toEqual([bad.address]);
  const underWay = send();
  writeFileSync(`${path}.new`, lines(good));
  renameSync(`${path}.new`, path);
  // A look-up under way asks the new server, too.
  expect((await underWay).outcome).toMatchObject({ kind: 'delivered' });
  expect(resolver.servers()).toEqual([good.address]);
});

test('a link that is changed is read again, as Kubernetes and resolvconf do it; an empty or missing file keeps the servers', async () => {
  const [old, good] = [await server({ rcode: 5 }), await server(HERE)];
  const folder = runDirectory('resolv');
  const path = join(folder, 'resolv.conf');
  writeFileSync(join(folder, 'one'), lines(old));
  writeFileSync(join(folder, 'two'), lines(good));
  symlinkSync('one', path);
  const { send } = await sending(path);
  expect((await send()).outcome).toMatchObject({ failure: 'dns' });
  symlinkSync('two', `${path}.new`);
  renameSync(`${path}.new`, path);
  expect((await send()).outcome).toMatchObject({ kind: 'delivered' });
  rmSync(path);
  expect((await send()).outcome).toMatchObject({ kind: 'delivered' });
  writeFileSync(path, '# being written\n');
  expect((await send()).outcome).toMatchObject({ kind: 'delivered' });
});

test('a server that answers that there is no such name or address is believed', async () => {
  for (const [answer, detail] of [
    [{ rcode: 3 }, 'ENOTFOUND'],
    [[], 'ENODATA'],
    [{ alias: 'gone.partner.test' }, 'ENODATA'],
  ] as const) {
    const [first, second] = [await server(answer), await server(HERE)];
    const { send } = await sending([first.address, second.address]);
    expect(await send()).toMatchObject({ outcome: { failure: 'dns' }, detail });
    expect(second.questions).toEqual([]);
  }
});

test('a name is asked for as it is, whatever the file has under search', async () => {
  const dns = await server({ rcode: 3 });
  const path = file();
  writeFileSync(path, lines(dns));
  await (await sending(path)).send();
  expect(new Set(dns.questions)).toEqual(new Set([`A ${HOST}`, `AAAA ${HOST}`]));
});

describe('at registration', () => {
  const check = (servers: readonly { address: string }[], dnsMs = 5_000) => {
    const resolver = createResolver(servers.map(({ address }) => address));
    closeLater({ close: () => resolver.cancel() });
    const options = { allowedCidrs: [], allowedPorts: [], resolver, timeouts: { dnsMs } };
    return checkRegistrationTarget('https://hooks.partner.test/in', options);
  };

  test.each([
    ['refuses', () => server({ rcode: 5 }), 'answered REFUSED'],
    ['fails', () => server({ rcode: 2 }), 'answered SERVFAIL'],
    ['is silent', () => server('silence'), 'did not answer'],
    ['is gone', gone, 'cannot be reached'],
  ] as const)('a server of ours that %s is no fault of the name', async (_what, start, said) => {
    const dns = await start();
    const message = `The URL was not checked: the name servers of this machine (${dns.address}) ${said}, for other names too.`;
    expect(await check([dns], 1_000)).toMatchObject({ ok: false, message: expect.stringContaining(message) });
  });

  test('an alias without an address is a name that does not resolve', async () => {
    const dns = await server({ alias: 'gone.partner.test' });
    const message = "The URL's host does not resolve (ENODATA).";
    expect(await check([dns])).toEqual({ ok: false, reason: 'dns', message });
  });

  test('a zone that is broken is the fault of the name', async () => {
    const dns = closeLater(await startDnsServer((name) => (name === '' ? [] : { rcode: 2 })));
    expect(await check([dns])).toMatchObject({
      ok: false,
      reason: 'dns',
      message: expect.stringContaining(
        `(${dns.address}) answered SERVFAIL for it, and answer for other names`,
      ),
    });
  });
});
