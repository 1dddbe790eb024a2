import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';

/**
 * One partner's endpoints in a process of their own. `flood`: informational answers for ever, as fast as they are taken.
 * `refuse`: a 503 to each, and the end of the connection. `quiet`: a 200 to each request, on kept connections.
 */
const [kind = 'quiet', certFile = '', keyFile = '', count = '1'] = process.argv.slice(2);
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const REFUSAL = 'HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
const FLOOD = Buffer.from('HTTP/1.1 102 Processing\r\n\r\n'.repeat(2_500));

function flood(socket: TLSSocket): void {
  const more = () => {
    while (!socket.destroyed && socket.write(FLOOD));
  };
  socket.on('drain', more).once('data', more);
}

function answer(socket: TLSSocket): void {
  // Requests come one at a time, each in one piece or two: head and body.
  let pending = '';
  socket.on('data', (chunk) => {
    pending += chunk.toString('latin1');
    if (!pending.endsWith('}')) return;
    pending = '';
    if (kind === 'quiet') socket.write(ANSWER);
    else socket.end(REFUSAL);
  });
}

async function main(): Promise<void> {
  const ports: number[] = [];
  const tls = { cert: readFileSync(certFile), key: readFileSync(keyFile) };
  for (let nth = 0; nth < Number(count); nth += 1) {
    const server = createServer(tls, (socket) => {
      socket.on('error', () => undefined);
      (kind === 'flood' ? flood : answer)(socket);
    });
    server.on('tlsClientError', () => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ports.push((server.address() as AddressInfo).port);
  }
  process.send?.({ ports });
}

process.on('disconnect', () => process.exit(0));
void main();
