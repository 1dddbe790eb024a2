import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import type { Writable } from 'node:stream';
import { createServer as createTlsServer, type TlsOptions, type TLSSocket } from 'node:tls';
import { createAuthority, issueCertificate, type IssuedCertificate } from '../../runtime/certificates/issue';
import { createResolver } from '../../outbound/names';
import { createSender, type SenderOptions } from '../../outbound/sender';
import { startDnsServer, type DnsAnswer } from '../support/dns-server';
import { VALID } from '../../testbed/tls';

export const HOST = 'hooks.partner.test';
const DAY = 86_400_000;
export const EXPIRED = { notBefore: new Date(Date.now() - 3 * DAY), notAfter: new Date(Date.now() - DAY) };

export const authority = createAuthority('Partner authority', VALID);

export async function certificateFor(name = HOST, validity = VALID): Promise<IssuedCertificate> {
  return issueCertificate(await authority, [{ type: 'dns', value: name }], validity);
}

export interface ReceiverOptions {
  readonly tls?: TlsOptions;
  readonly address?: string;
  readonly port?: number;
}

export async function startReceiver(listener: RequestListener, options: ReceiverOptions = {}) {
  return listen(createHttpsServer({ ...(await certificateFor()), ...options.tls }, listener), options);
}

/** The same, but bytes for bytes: `onData` is called when the nth request of a connection has come in. */
export async function startRawReceiver(
  onData: (socket: TLSSocket, reset: () => void, nth: number) => void,
  options: ReceiverOptions = {},
) {
  const underneath = new Map<number | undefined, Socket>();
  const server = createTlsServer({ ...(await certificateFor()), ...options.tls }, (socket) => {
    const reset = () => void underneath.get(socket.remotePort)?.resetAndDestroy();
    let nth = 0;
    socket.on('error', () => {});
    socket.on('data', () => onData(socket, reset, (nth += 1)));
  });
  server.on('connection', (socket: Socket) => underneath.set(socket.remotePort, socket));
  return listen(server, options);
}

/** Writes the first text, then the second again and again until the connection ends. */
export const dripping = (first: string, then: string, everyMs: number) => (socket: TLSSocket) => {
  socket.write(first);
  const drip = setInterval(() => socket.write(then), everyMs);
  socket.once('close', () => clearInterval(drip));
};

/** Writes the same without end, as fast as it is taken. @returns how many bytes were taken so far. */
export function flood(to: Writable, chunk: string | Buffer): () => number {
  let taken = 0;
  const more = () => {
    while (!to.destroyed && to.write(chunk)) taken += chunk.length;
  };
  to.on('drain', more).on('error', () => {});
  more();
  return () => taken;
}

/** Writes this as soon as a request has come in. */
export function answering(text: string): (socket: TLSSocket) => void {
  return (socket) => void socket.write(text);
}

async function listen(server: ReturnType<typeof createTlsServer>, options: ReceiverOptions) {
  const sockets = new Set<Socket>();
  let connections = 0;
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => {});
  server.listen(options.port ?? 0, options.address ?? '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `https://${HOST}:${port}/hook`,
    connections: () => connections,
    open: () => sockets.size,
    onSecure: (listener: (socket: TLSSocket) => void) => void server.on('secureConnection', listener),
    renew: (certificate: IssuedCertificate) => server.setSecureContext(certificate),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A plain TCP server on loopback, closed after the test. */
export async function startTcpServer(onSocket: (socket: Socket) => void = () => {}) {
  const server = closeLater(createServer((socket) => onSocket(socket.on('error', () => {}))));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, port: (server.address() as AddressInfo).port };
}

/** Servers at one port to which no connection comes about: the kernel drops every request for one without an answer. */
export async function startDeafServer(hosts: readonly string[] = ['127.0.0.1']) {
  // A stopped process whose queues of connections are full.
  const child = spawn(process.execPath, [
    '-e',
    `const { createServer } = require('node:net');
    const [first, ...others] = process.argv.slice(1);
    const listen = (host, port) => new Promise((resolve) => {
      const server = createServer().listen({ port, host, backlog: 1 }, () => resolve(server.address().port));
    });
    listen(first, 0).then(async (port) => {
      for (const host of others) await listen(host, port);
      console.log(port);
      process.kill(process.pid, 'SIGSTOP');
    });`,
    ...hosts,
  ]);
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  const fillers = hosts.flatMap((host) =>
    Array.from({ length: 4 }, () => connect(port, host).on('error', () => {})),
  );
  for (const host of hosts.keys())
    await Promise.race(fillers.slice(4 * host, 4 * host + 4).map((socket) => once(socket, 'connect')));
  return {
    port,
    close() {
      for (const socket of fillers) socket.destroy();
      child.kill('SIGKILL');
    },
  };
}

/** Parts of a test that are closed after it. */
const opened: (() => unknown)[] = [];

export function closeLater<T extends { close: () => unknown }>(part: T): T {
  opened.push(() => part.close());
  return part;
}

export async function closeAll(): Promise<void> {
  for (const close of opened.splice(0).toReversed()) await close();
}

export interface TestSenderOptions extends Partial<SenderOptions> {
  readonly dns?: (name: string, type: 'A' | 'AAAA') => DnsAnswer | Promise<DnsAnswer>;
  readonly ports?: readonly number[];
}

/** A sender that asks a DNS server of its own, where every name is 127.0.0.1, and may go to loopback. */
export async function testSender(options: TestSenderOptions = {}) {
  const { dns = () => ['127.0.0.1'], ports = [], ...rest } = options;
  const server = closeLater(await startDnsServer(dns));
  const resolver = createResolver([server.address]);
  opened.push(() => resolver.cancel());
  const sender = createSender({
    allowedCidrs: ['127.0.0.0/8'],
    allowedPorts: ports,
    resolver,
    ca: (await authority).cert,
    now: Date.now,
    ...rest,
  });
  closeLater(sender);
  return { ...sender, questions: server.questions };
}

export const post = (url: string) => ({
  endpointId: 'whe_1',
  alone: false,
  onSurplus: () => {},
  url,
  headers: { 'webhook-id': 'evt_1' },
  body: '{"amount":"£5"}',
});

/** A partner's HTTPS server, and a sender that may send to it. */
export async function served(
  listener: RequestListener,
  options?: ReceiverOptions,
  sending: TestSenderOptions = {},
) {
  const receiver = closeLater(await startReceiver(listener, options));
  return { receiver, sender: await testSender({ ports: [receiver.port], ...sending }) };
}

export async function rawServed(
  onData: Parameters<typeof startRawReceiver>[0],
  options: TestSenderOptions = {},
) {
  const receiver = closeLater(await startRawReceiver(onData));
  return { receiver, sender: await testSender({ ports: [receiver.port], ...options }) };
}

export async function sendOnce(
  answer: string | Parameters<typeof rawServed>[0],
  options?: TestSenderOptions,
) {
  const onData = typeof answer === 'string' ? answering(answer) : answer;
  const { receiver, sender } = await rawServed(onData, options);
  const startedAt = performance.now();
  const result = await sender.send(post(receiver.url));
  return { ...result, receiver, tookMs: performance.now() - startedAt };
}
