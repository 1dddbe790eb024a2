import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import type { FailMessage, HangMessage, ListeningMessage, Moment, ReceivedMessage } from './messages';
import { monotonicMs } from './monotonic';

/**
 * All partners' endpoints in one process, under names of their own. Bare TLS and one fixed answer, because every cycle
 * spent here is missing to what is measured on two cores. It reads no more of a request than its length and event id.
 */
const [certFile = '', keyFile = ''] = process.argv.slice(2);
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const REFUSAL = 'HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n';
const HEAD_END = '\r\n\r\n';

let hanging: ReadonlySet<string> = new Set();
let failing: ReadonlySet<string> = new Set();
const unanswered = new Set<TLSSocket>();
let batch: Moment[] = [];

const server = createServer({ cert: readFileSync(certFile), key: readFileSync(keyFile) }, (socket) => {
  let pending = '';
  socket.on('error', () => undefined);
  socket.on('close', () => unanswered.delete(socket));
  socket.on('data', (chunk) => {
    pending += chunk.toString('latin1');
    const end = pending.indexOf(HEAD_END);
    if (end === -1) return;
    const length = Number(/\r\ncontent-length: (\d+)/i.exec(pending)?.[1] ?? 0);
    if (pending.length < end + HEAD_END.length + length) return;
    const eventId = /\r\nwebhook-id: (\S+)/i.exec(pending)?.[1] ?? '';
    pending = '';
    report([eventId, monotonicMs()]);
    if (hanging.has(socket.servername || '')) unanswered.add(socket);
    else socket.write(failing.has(socket.servername || '') ? REFUSAL : ANSWER);
  });
});
server.listen(0, '127.0.0.1', () => send({ port: (server.address() as AddressInfo).port }));

process.on('message', (message: HangMessage | FailMessage) => {
  if ('fail' in message) {
    failing = new Set(message.fail);
    return;
  }
  const { hang } = message;
  hanging = new Set(hang);
  for (const socket of unanswered) if (!hanging.has(socket.servername || '')) socket.write(ANSWER);
});
process.on('disconnect', () => process.exit(0));

/** Together with what else arrives in the same turn. */
function report(moment: Moment): void {
  if (batch.length === 0) {
    setImmediate(() => {
      send({ received: batch });
      batch = [];
    });
  }
  batch.push(moment);
}

function send(message: ListeningMessage | ReceivedMessage): void {
  process.send?.(message);
}
