import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { connect, type TLSSocket } from 'node:tls';

/**
 * A stranger at one address, in a process of its own. `keys`: calls with made-up keys as fast as they are answered, over 64
 * connections. `idle`: opens 10,000 connections and keeps what it gets. Sends a message once it is under way, and what it saw.
 */
const [kind = 'keys', port = '', caFile = '', localAddress = '127.0.0.2', seconds = '10'] =
  process.argv.slice(2);
const CALLERS = 64;
const WANTED = 10_000;
const until = performance.now() + Number(seconds) * 1_000;
const target = {
  host: '127.0.0.1',
  port: Number(port),
  localAddress,
  servername: 'localhost',
  ca: readFileSync(caFile),
};
const statuses: Record<string, number> = {};
const count = (what: string) => (statuses[what] = (statuses[what] ?? 0) + 1);

function open(): TLSSocket {
  const socket = connect(target);
  return socket.on('error', () => undefined);
}

async function call(): Promise<void> {
  for (let nth = 0; performance.now() < until; nth += 1) {
    const socket = open();
    const send = () =>
      socket.write(
        `POST /v1/finance-quote HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sk_live_${nth}${Math.random().toString(36).slice(2)}\r\n` +
          'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}',
      );
    socket.once('secureConnect', send);
    socket.on('data', (answer) => {
      count(answer.toString('latin1', 9, 12));
      if (performance.now() < until) send();
    });
    const timer = setTimeout(() => socket.destroy(), Math.max(1, until - performance.now()));
    await new Promise((resolve) => socket.once('close', resolve));
    clearTimeout(timer);
    count('connection ended');
  }
}

async function idle(): Promise<void> {
  const sockets: TLSSocket[] = [];
  let openNow = 0;
  let most = 0;
  const startedAt = performance.now();
  for (let nth = 0; nth < WANTED; nth += 1) {
    const socket = open();
    socket.once('secureConnect', () => {
      count('opened');
      openNow += 1;
      most = Math.max(most, openNow);
      socket.once('close', () => (openNow -= 1));
    });
    socket.once('close', () => count('closed'));
    sockets.push(socket);
    if (nth % 10 === 9) await delay(Math.max(0, startedAt + nth - performance.now()));
  }
  process.send?.('under way');
  await delay(Number(seconds) * 1_000);
  statuses['most at once'] = most;
  for (const socket of sockets) socket.destroy();
}

async function main(): Promise<void> {
  if (kind === 'idle') await idle();
  else {
    setTimeout(() => process.send?.('under way'), 2_000);
    await Promise.all(Array.from({ length: CALLERS }, call));
  }
  process.send?.(statuses);
  process.disconnect();
}

void main();
