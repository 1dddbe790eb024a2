import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { signal, waitForEnd } from '../../dev/processes';

/** Listens, keeps eight threads busy, and has memory to give back: it takes a moment to end. */
const SERVER = `
  const { Worker } = require('node:worker_threads');
  const memory = Buffer.alloc(200e6, 1);
  for (let each = 0; each < 8; each += 1) new Worker('for (;;);', { eval: true });
  const server = require('node:net').createServer();
  server.listen(0, '127.0.0.1', () => setTimeout(() => console.log(server.address().port), 100));
`;

test('a process has ended when its last thread has: its port is free then', async () => {
  const found: string[] = [];
  for (let times = 0; times < 6; times += 1) {
    const child = spawn(process.execPath, ['-e', SERVER], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [port] = (await once(child.stdout, 'data')) as [Buffer];
    const pid = child.pid ?? 0;
    signal(pid, 'SIGKILL');
    expect(await waitForEnd(pid, 20_000)).toBe(true);
    const server = createServer().listen(Number(port.toString()), '127.0.0.1');
    found.push(await once(server, 'listening').then(() => 'free', String));
    server.close();
  }
  expect(found).toEqual(Array.from({ length: 6 }, () => 'free'));
}, 60_000);
