import { createSocket, type RemoteInfo } from 'node:dgram';
import { once } from 'node:events';
import { isIPv4 } from 'node:net';
import * as ipaddr from 'ipaddr.js';

/**
 * Addresses of both families, a response code (2 SERVFAIL, 3 NXDOMAIN, 5 REFUSED), an alias without its address, or no answer at all.
 */
export type DnsAnswer =
  readonly string[] | { readonly rcode: number } | { readonly alias: string } | 'silence';

const A = 1;
const CNAME = 5;
const AAAA = 28;

/** A small DNS server over UDP, on loopback unless told otherwise; it asks `answer` for each question. */
export async function startDnsServer(
  answer: (name: string, type: 'A' | 'AAAA') => DnsAnswer | Promise<DnsAnswer>,
  { host, port }: { host: string; port: number } = { host: '127.0.0.1', port: 0 },
) {
  const socket = createSocket('udp4');
  const questions: string[] = [];
  let closed = false;
  const reply = async (query: Buffer, peer: RemoteInfo) => {
    const { name, end } = readName(query);
    const type = query.readUInt16BE(end) === AAAA ? 'AAAA' : 'A';
    questions.push(`${type} ${name}`);
    const given = await answer(name, type);
    if (given === 'silence' || closed) return;
    socket.send(respond(query, end + 4, type, given), peer.port, peer.address);
  };
  socket.on('message', (query, peer) => void reply(query, peer));
  socket.bind(port, host);
  await once(socket, 'listening');
  return {
    address: `${host}:${socket.address().port}`,
    /** What was asked so far, as `A name` and `AAAA name`. */
    questions,
    close() {
      closed = true;
      return new Promise<void>((resolve) => socket.close(resolve));
    },
  };
}

function readName(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), end: at + 1 };
}

function respond(
  query: Buffer,
  questionEnd: number,
  type: 'A' | 'AAAA',
  given: Exclude<DnsAnswer, 'silence'>,
): Buffer {
  const rcode = 'rcode' in given ? given.rcode : 0;
  const found = recordsOf(type, given);
  const head = Buffer.alloc(12);
  query.copy(head, 0, 0, 2);
  // Response, recursion desired and available.
  head.writeUInt16BE(0x8180 | rcode, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(found.length, 6);
  const records = found.map(({ code, data }) => {
    const record = Buffer.alloc(12);
    // The name of the question, class IN, no time to live.
    record.writeUInt16BE(0xc00c, 0);
    record.writeUInt16BE(code, 2);
    record.writeUInt16BE(1, 4);
    record.writeUInt16BE(data.length, 10);
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([head, query.subarray(12, questionEnd), ...records]);
}

function recordsOf(
  type: 'A' | 'AAAA',
  given: Exclude<DnsAnswer, 'silence'>,
): { code: number; data: Buffer }[] {
  if ('rcode' in given) return [];
  if ('alias' in given) {
    const labels = given.alias
      .split('.')
      .map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`));
    return [{ code: CNAME, data: Buffer.concat([...labels, Buffer.alloc(1)]) }];
  }
  const addresses = given.filter((address) => isIPv4(address) === (type === 'A'));
  const code = type === 'A' ? A : AAAA;
  return addresses.map((address) => ({ code, data: Buffer.from(ipaddr.parse(address).toByteArray()) }));
}
