import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { monotonicMs } from './rounds';

/**
 * What the endpoints do with a request. `answer`: 200, on a connection that is kept. `late`: the same, after 300 ms. `refuse`: 503, and
 * the connection is closed. `hang`: nothing, until they behave otherwise. `flood`: informational answers without end, as fast as they
 * are read.
 */
export type Behaviour = 'answer' | 'late' | 'refuse' | 'hang' | 'flood';

/** An event, and the monotonic moment (ms) at which it was stored, started or received. */
export type Moment = readonly [eventId: string, atMs: number];

/** What has arrived since the last such message. */
export interface FromReceiver {
  readonly received: readonly Moment[];
}

/**
 * The endpoints of many partners in one process, each under its own host name. Bare TLS and fixed answers, because every
 * cycle used here is missing to what is measured on two cores. It reads no more of a request than its length and event id.
 */
const [certFile = '', keyFile = ''] = process.argv.slice(2);
const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';
const REFUSAL = 'HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';
const FLOOD = Buffer.from('HTTP/1.1 102 Processing\r\n\r\n'.repeat(2_500));
/** Fast enough for the fast path, and slow enough to fill its slots. */
const LATE_MS = 300;
const HEAD_END = '\r\n\r\n';

let behaviour: Behaviour = 'answer';
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
    if (behaviour === 'answer') socket.write(ANSWER);
    else if (behaviour === 'late') setTimeout(() => socket.write(ANSWER), LATE_MS);
    else if (behaviour === 'refuse') socket.end(REFUSAL);
    else if (behaviour === 'hang') unanswered.add(socket);
    else flood(socket);
  });
});
server.on('tlsClientError', () => undefined);
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));

process.on('message', (wanted: Behaviour) => {
  behaviour = wanted;
  for (const socket of unanswered) socket.write(ANSWER);
  unanswered.clear();
});
process.on('disconnect', () => process.exit(0));

function flood(socket: TLSSocket): void {
  const more = () => {
    while (!socket.destroyed && socket.write(FLOOD));
  };
  socket.on('drain', more);
  more();
}

/** Together with what else arrives in the same turn of the event loop. */
function report(moment: Moment): void {
  if (batch.length === 0) {
    setImmediate(() => {
      process.send?.({ received: batch } satisfies FromReceiver);
      batch = [];
    });
  }
  batch.push(moment);
}
