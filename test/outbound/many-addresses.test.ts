import { closeAll, closeLater, post, startDeafServer, startReceiver, testSender } from './partner';

afterEach(closeAll);

const DEAD = ['127.0.0.2', '127.0.0.3', '127.0.0.4', '127.0.0.5', '127.0.0.6', '127.0.0.7', '127.0.0.8'];
const LOOPBACK = ['127.0.0.0/8', '::1/128'];

/** A name with addresses that take no connection, and one that does. */
async function dialled(dead: readonly string[], alive: string) {
  const { port } = closeLater(await startDeafServer(dead));
  const receiver = closeLater(
    await startReceiver((_request, response) => response.end(), { address: alive, port }),
  );
  const dns = (_name: string, type: 'A' | 'AAAA') =>
    [...dead, alive].filter((address) => address.includes(':') === (type === 'AAAA'));
  const sender = await testSender({ ports: [port], dns, allowedCidrs: LOOPBACK });
  return { receiver, send: () => sender.send(post(receiver.url)) };
}

test.each([
  ['five addresses of which only the last answers', DEAD.slice(0, 4), '127.0.0.1'],
  ['eight addresses of which only the last answers', DEAD, '127.0.0.1'],
  ['four dead IPv4 addresses and a live IPv6', DEAD.slice(0, 4), '::1'],
])('%s: delivered within the time to connect', async (_what, dead, alive) => {
  const { send } = await dialled(dead, alive);
  const { outcome, address } = await send();
  expect(outcome).toMatchObject({ kind: 'delivered' });
  expect(address).toBe(alive);
});

test('a ninth address is not tried', async () => {
  const { receiver, send } = await dialled(['127.0.0.1', ...DEAD], '127.0.0.9');
  expect((await send()).outcome).toMatchObject({ failure: 'connect' });
  expect(receiver.connections()).toBe(0);
});

test('the first address that connects is the only one that gets a request, and the others are closed', async () => {
  const { port } = closeLater(await startDeafServer(['127.0.0.2']));
  const receiver = closeLater(
    await startReceiver((_request, response) => response.end(), { address: '127.0.0.1', port }),
  );
  const second = closeLater(
    await startReceiver((_request, response) => response.end(), { address: '127.0.0.3', port }),
  );
  const dns = (_name: string, type: 'A' | 'AAAA') =>
    type === 'A' ? ['127.0.0.2', '127.0.0.1', '127.0.0.3'] : [];
  const sender = await testSender({ ports: [port], dns });
  expect(await sender.send(post(receiver.url))).toMatchObject({ address: '127.0.0.1' });
  expect(second.connections()).toBe(0);
});
