import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import { pause } from '../harness/bench';

/**
 * A stranger at one address, in a process of its own. `keys`: calls with made-up keys over some connections, as fast as they are
 * answered. `idle`: opens connections and keeps those that it gets. Sends a message once it is under way, and another with the
 * answers that it has seen.
 */
const [kind = 'keys', port = '', caFile = '', localAddress, seconds = '10', wanted = '64'] =
  process.argv.slice(2);
const target = {
  host: '127.0.0.1',
  port: Number(port),
  localAddress,
  servername: 'localhost',
  ca: readFileSync(caFile),
};
const until = performance.now() + Number(seconds) * 1_000;
const seen: Record<string, number> = {};
const count = (what: string) => (seen[what] = (seen[what] ?? 0) + 1);
const open = (): TLSSocket => connect(target).on('error', () => undefined);

async function call(): Promise<void> {
  while (performance.now() < until) {
    const socket = open();
    const send = () =>
      socket.write(
        `POST /v1/finance-quote HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer sk_live_${Math.random().toString(36).slice(2)}\r\n` +
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
  let [now, most] = [0, 0];
  const startedAt = performance.now();
  for (let nth = 0; nth < Number(wanted); nth += 1) {
    const socket = open();
    socket.once('secureConnect', () => {
      count('opened');
      now += 1;
      most = Math.max(most, now);
      socket.once('close', () => (now -= 1));
    });
    socket.once('close', () => count('closed'));
    sockets.push(socket);
    // A thousand a second.
    if (nth % 10 === 9) await pause(startedAt + nth - performance.now());
  }
  process.send?.('under way');
  await pause(Number(seconds) * 1_000);
  seen['most at once'] = most;
  for (const socket of sockets) socket.destroy();
}

async function main(): Promise<void> {
  if (kind === 'idle') await idle();
  else {
    setTimeout(() => process.send?.('under way'), 2_000);
    await Promise.all(Array.from({ length: Number(wanted) }, call));
  }
  process.send?.(seen);
  process.disconnect();
}

process.on('disconnect', () => process.exit(0));
void main();
