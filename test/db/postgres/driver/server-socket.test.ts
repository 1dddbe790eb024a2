import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { serverSocket } from '../../../../db/postgres/driver/server-socket';

const opened: (() => unknown)[] = [];
afterEach(() => opened.splice(0).forEach((close) => close()));

test('back pressure is neither reported nor announced to be over', async () => {
  const accepted: Socket[] = [];
  const server = createServer((socket) => {
    accepted.push(socket.pause());
    opened.push(() => socket.destroy());
  }).listen(0, '127.0.0.1');
  opened.push(() => server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = (await serverSocket(`postgres://u@127.0.0.1:${port}/d`, 0).socket({
    host: ['127.0.0.1'],
    port: [port],
  })) as Socket;
  opened.push(() => socket.destroy());
  let drained = false;
  socket.on('drain', () => (drained = true));
  // More than the kernel takes; its first four bytes are its length, as of every first message.
  const message = Buffer.alloc(32 * 1024 * 1024);
  message.writeUInt32BE(message.length);
  expect(socket.write(message)).toBe(true);
  expect(socket.writableNeedDrain).toBe(true);
  await once(socket, 'connect');
  await sleep(20);
  accepted[0]?.resume();
  while (socket.writableLength > 0) await sleep(10);
  await sleep(20);
  expect(drained).toBe(false);
});
