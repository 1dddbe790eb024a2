import net, { type Socket } from 'node:net';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { type TestApi, useApi } from '../support/api';
import { goodQuote } from '../../testbed/values';
import { newReference } from '../support/applications';
import { APPLICATIONS, internalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';

/** One answer as it came over the wire. */
interface RawAnswer {
  readonly status: number;
  /** By lower-case name; a repeated one joined with ", ". */
  readonly headers: Readonly<Record<string, string>>;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every form
  readonly body: any;
  readonly text: string;
}

export interface Exchange {
  readonly answers: RawAnswer[];
  readonly closed: boolean;
  readonly tookMs: number;
}

interface ExchangeOptions {
  /** Ends after so many answers (default 1), or once the server closes. */
  readonly answers?: number;
  /** Also waits for the server to close after the answers. */
  readonly untilClosed?: boolean;
  /** Gives up listening after this long, in milliseconds. */
  readonly patienceMs?: number;
  /** Called once connected, instead of writing `bytes` at once. */
  readonly drive?: (socket: Socket) => void;
}

/** Where to connect: with TLS, or plainly without an authority. */
interface Target {
  readonly port: number;
  readonly ca: string | null;
}

/** Opens a TLS connection without any HTTP client on it. Errors after connecting count as the end. */
export function openTls(target: Target, options: ConnectionOptions = {}): TLSSocket {
  const socket = connect({
    host: '127.0.0.1',
    port: target.port,
    ...(target.ca && { ca: target.ca }),
    ...options,
  });
  return socket.on('error', () => undefined);
}

/** Sends bytes as they are and collects what comes back. */
export function exchange(
  target: Target,
  bytes: string | Buffer,
  { answers: wanted = 1, untilClosed = false, patienceMs = 5_000, drive }: ExchangeOptions = {},
): Promise<Exchange> {
  return new Promise((resolve) => {
    const startedAt = performance.now();
    const socket =
      target.ca === null
        ? net.connect(target.port, '127.0.0.1').on('error', () => undefined)
        : openTls(target);
    let received: Buffer = Buffer.alloc(0);
    const finish = (closed: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve({ answers: readAnswers(received), closed, tookMs: performance.now() - startedAt });
    };
    const timer = setTimeout(() => finish(false), patienceMs);
    socket.once(target.ca === null ? 'connect' : 'secureConnect', () =>
      drive ? drive(socket) : socket.write(bytes),
    );
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (!untilClosed && readAnswers(received).length >= wanted) finish(false);
    });
    socket.once('close', () => finish(true));
  });
}

function readAnswers(bytes: Buffer): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let at = 0; ;) {
    const end = bytes.indexOf('\r\n\r\n', at);
    if (end === -1) return answers;
    const [statusLine = '', ...lines] = bytes.toString('latin1', at, end).split('\r\n');
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(statusLine)?.[1]);
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(':');
      const name = line.slice(0, colon).toLowerCase();
      const value = line.slice(colon + 1).trim();
      headers[name] = headers[name] === undefined ? value : `${headers[name]}, ${value}`;
    }
    const length = Number(headers['content-length'] ?? 0);
    if (bytes.length < end + 4 + length) return answers;
    const text = bytes.toString('utf8', end + 4, end + 4 + length);
    at = end + 4 + length;
    // 100 Continue is not the answer.
    if (status >= 200) answers.push({ status, headers, text, body: text === '' ? undefined : parse(text) });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export interface RequestParts {
  readonly line?: string;
  readonly headers?: readonly string[];
  /** Leaves the header lines of these names out. */
  readonly without?: readonly string[];
  readonly body?: string | Buffer;
}

/** A request that a listener answers 200, however often it is sent. */
export interface GoodRequest extends Target {
  readonly line: string;
  readonly key: string;
  readonly body: string;
}

const goodQuoteRequest = (api: TestApi): GoodRequest => ({
  port: api.port,
  ca: api.ca,
  line: 'POST /v1/finance-quote HTTP/1.1',
  key: api.keys.test,
  body: JSON.stringify(goodQuote),
});

/** The listeners whose requests are read by the same rules. */
export const LISTENERS = ['public', 'internal'] as const;
type Listener = (typeof LISTENERS)[number];

/** Starts an API, with a good request to each listener, before the tests of a file. After them it has logged no fault. */
export function hostileTarget() {
  // Before it is closed.
  afterAll(async () => {
    // Nothing that was sent may have looked like a fault of ours, and it still answers.
    expect(api.logged('').filter(({ level, status = 0 }) => level >= 50 || status >= 500)).toEqual([]);
    expect(await api.quote()).toMatchObject({ status: 200 });
  });
  const api = useApi();
  const requests = {} as Record<Listener, GoodRequest>;
  beforeAll(async () => void Object.assign(requests, await goodRequests(api)));
  return {
    api,
    requests,
    /** The answer to a listener's good request, changed in these parts. */
    send: async (parts: RequestParts, listener: Listener = 'public') => {
      const good = requests[listener];
      return (await exchange(good, requestBytes(good, parts))).answers[0];
    },
  };
}

async function goodRequests(api: TestApi): Promise<Record<Listener, GoodRequest>> {
  const { key } = await internalClient(api);
  const { service_quote_id } = (await api.quote({ merchant_id: SHOP })).body.data;
  const amounts = { loan_amount: '900.00', customer_deposit: '100.00' };
  const application = { lender: 'lender_a', lender_reference: newReference(), service_quote_id, ...amounts };
  const [line, body] = [`POST ${APPLICATIONS} HTTP/1.1`, JSON.stringify(application)];
  return { public: goodQuoteRequest(api), internal: { port: api.internalPort, ca: null, line, key, body } };
}

/** A good request in bytes, changed in these parts. */
export function requestBytes(good: GoodRequest, parts: RequestParts = {}): Buffer {
  const body = Buffer.from(parts.body ?? good.body);
  const lines = [
    'Host: 127.0.0.1',
    `Authorization: Bearer ${good.key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ].filter((line) => !parts.without?.some((name) => line.toLowerCase().startsWith(`${name.toLowerCase()}:`)));
  const head = [parts.line ?? good.line, ...lines, ...(parts.headers ?? [])];
  return Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

/** A good quote request in bytes, changed in these parts. */
export const quoteBytes = (api: TestApi, parts: RequestParts = {}) =>
  requestBytes(goodQuoteRequest(api), parts);

/** Rows for `test.each` with a title of bearable length in front (`%j` prints it). */
export function titled(values: readonly string[]): [title: string, value: string][] {
  return values.map((value) => [value.slice(0, 60), value]);
}

export const SECURITY_HEADERS = {
  'strict-transport-security': 'max-age=31536000',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
};

/** The contract's form: the id, the envelope, a documented code. */
export function expectRefusal(answer: RawAnswer | undefined, status: number | number[], code?: string): void {
  expect(answer).toBeDefined();
  expect([status].flat()).toContain(answer?.status);
  expect(answer?.headers['x-request-id']).toMatch(/^[\x21-\x7e]{1,128}$/);
  expect(answer?.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(answer?.headers).toMatchObject(SECURITY_HEADERS);
  expect(answer?.body).toMatchObject({
    success: false,
    error: { code: code ?? expect.stringMatching(/^[A-Z_]+$/), message: expect.any(String) },
  });
}

export const expectBad = (answer: RawAnswer | undefined) => expectRefusal(answer, 400, 'INVALID_REQUEST');

/** Both forms of the rate limit's headers, as on every answer to a call that was counted. */
export function expectLimits(answer: RawAnswer | undefined): void {
  const { headers = {} } = answer ?? {};
  const limit = headers['ratelimit-limit'];
  expect(limit).toMatch(/^\d+$/);
  expect(headers).toMatchObject({
    'ratelimit-policy': `${limit};w=60`,
    'ratelimit-remaining': expect.stringMatching(/^\d+$/),
    'ratelimit-reset': expect.stringMatching(/^\d+$/),
    'x-ratelimit-limit': limit,
    'x-ratelimit-remaining': headers['ratelimit-remaining'],
    'x-ratelimit-reset': expect.stringMatching(/^\d{10}$/),
  });
}

export const openConnections = (api: TestApi) => api.metric('pfqs_http_connections');

export { setTimeout as pause } from 'node:timers/promises';
