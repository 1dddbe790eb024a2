import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';

let echo: Server;
let proxy: TcpProxy;

beforeEach(async () => {
  echo = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => echo.listen(0, '127.0.0.1', resolve));
  proxy = await startTcpProxy({ port: (echo.address() as AddressInfo).port });
});

afterEach(async () => {
  await proxy.close();
  await new Promise((resolve) => echo.close(resolve));
});

async function client(): Promise<Socket> {
  const socket = connect(proxy.port, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** What comes back within the time. */
async function exchange(socket: Socket, text: string, waitMs: number): Promise<string> {
  let received = '';
  const collect = (data: Buffer) => (received += data.toString());
  socket.on('data', collect);
  socket.write(text);
  const deadline = Date.now() + waitMs;
  while (received.length < text.length && Date.now() < deadline) await new Promise((go) => setTimeout(go, 5));
  socket.off('data', collect);
  return received;
}

test('passes bytes on, and an orderly end', async () => {
  const socket = await client();
  expect(await exchange(socket, 'x'.repeat(300_000), 2_000)).toHaveLength(300_000);
  expect(proxy.connections()).toBe(1);
  socket.end();
  await once(socket.resume(), 'close');
  expect(proxy.connections()).toBe(0);
});

test('delays every chunk', async () => {
  const socket = await client();
  proxy.delay(60);
  const startedAt = Date.now();
  expect(await exchange(socket, 'late', 1_000)).toBe('late');
  expect(Date.now() - startedAt).toBeGreaterThanOrEqual(115);
  socket.destroy();
});

test('freezes without closing, and passes on later what came meanwhile', async () => {
  const socket = await client();
  proxy.freeze();
  expect(await exchange(socket, 'held', 100)).toBe('');
  const newcomer = await client();
  expect(await exchange(newcomer, 'hello', 50)).toBe('');
  expect(socket.destroyed).toBe(false);
  const received = once(socket, 'data');
  proxy.unfreeze();
  expect(String((await received)[0])).toBe('held');
  socket.destroy();
  newcomer.destroy();
});

test('drips', async () => {
  const socket = await client();
  proxy.drip(10);
  const part = await exchange(socket, 'y'.repeat(1_000), 120);
  expect(part.length).toBeGreaterThan(0);
  expect(part.length).toBeLessThan(300);
  socket.destroy();
});

test('resets what is open, and refuses what is new', async () => {
  const socket = await client();
  const reset = once(socket, 'error');
  proxy.cut();
  expect((await reset)[0]).toMatchObject({ code: 'ECONNRESET' });
  proxy.refuse(true);
  const refused = connect(proxy.port, '127.0.0.1');
  expect((await once(refused.resume(), 'error'))[0]).toMatchObject({ code: 'ECONNRESET' });
  proxy.refuse(false);
  const accepted = await client();
  expect(await exchange(accepted, 'again', 500)).toBe('again');
  accepted.destroy();
});
