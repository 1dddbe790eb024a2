import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { useService } from '../support/service';
import { startTestApi } from '../support/api';
import { until } from '../../testbed/until';
import { internalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { emittedBy, findLeaks } from '../../testbed/emitted';

let collector: Awaited<ReturnType<typeof startTraceCollector>>;
const { api, receiver, register, worker } = useService(async () => {
  collector = await startTraceCollector();
  const environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const ladders = { TEST_LADDER_SECONDS: '0,1', DELIVERY_LADDER_SECONDS: '0,1' };
  return { api: environment, worker: { ...environment, ...ladders } };
});
beforeAll(() => register());
afterAll(() => collector?.close());

const CALLERS_TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const spansOf = (traceId: string) => collector.spans.filter((span) => span.traceId === traceId);
const spanOf = (traceId: string, name: string) => spansOf(traceId).find((span) => span.name === name);
const rootOf = (requestId: string) =>
  collector.spans.find(
    (span) => span.attributes['pfqs.request_id'] === requestId && span.service === 'pfqs-api',
  );

test('a test notification is one trace, from the request to the recorded attempt', async () => {
  const answer = await api.call({
    path: '/v1/notifications/test',
    headers: { traceparent: `00-${CALLERS_TRACE}-00f067aa0ba902b7-01`, 'x-request-id': 'rq-traced' },
  });
  expect(answer.status).toBe(200);
  await until(() => rootOf('rq-traced') !== undefined, 'the span of the request');
  const { traceId = '' } = rootOf('rq-traced') ?? {};
  await until(() => spanOf(traceId, 'record') !== undefined, 'all spans');
  // The caller's trace is linked, and nothing of ours is in it.
  expect(traceId).not.toBe(CALLERS_TRACE);
  expect(spansOf(CALLERS_TRACE)).toEqual([]);
  const request = spanOf(traceId, 'POST /v1/notifications/test');
  const store = spanOf(traceId, 'store notification');
  expect(request).toMatchObject({
    service: 'pfqs-api',
    parentSpanId: '',
    links: [{ traceId: CALLERS_TRACE, spanId: '00f067aa0ba902b7' }],
    attributes: {
      'http.route': '/v1/notifications/test',
      'http.response.status_code': 200,
      'pfqs.request_id': 'rq-traced',
    },
  });
  expect(store).toMatchObject({ service: 'pfqs-api', parentSpanId: request?.spanId });
  for (const name of ['dispatch', 'attempt', 'record'])
    expect(spanOf(traceId, name)).toMatchObject({
      service: 'pfqs-worker',
      parentSpanId: store?.spanId,
      attributes: {
        'pfqs.request_id': 'rq-traced',
        'pfqs.notification_id': answer.body.data.notification_id,
      },
    });
  expect(spanOf(traceId, 'attempt')?.attributes).toMatchObject({
    'pfqs.outcome': 'delivered',
    'pfqs.attempt': 1,
    'http.response.status_code': 200,
  });
});

test('a caller does not decide which traces are kept', async () => {
  const none = await startTestApi({
    environment: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_TRACES_SAMPLER_ARG: '0' },
  });
  // A ratio keeps the lowest ids; the flag asks for it to be kept.
  for (const traceId of [`${'0'.repeat(31)}1`, CALLERS_TRACE]) {
    const headers = { traceparent: `00-${traceId}-00f067aa0ba902b7-01`, 'x-request-id': 'rq-unkept' };
    expect((await none.quote({}, { headers })).status).toBe(200);
  }
  // Sends what is left.
  await none.close();
  expect(rootOf('rq-unkept')).toBeUndefined();
});

test('each attempt is a span that says what it came to', async () => {
  receiver.behave((nth) => (nth % 2 === 1 ? 503 : 200));
  const lender = await internalClient(api);
  const quoted = await api.quote({ merchant_id: SHOP });
  const opened = await lender.openLink(quoted.body.data.products[0].merchant_finance_url);
  expect(opened.status).toBe(200);
  const requestId = String(opened.headers['x-request-id']);
  const attempts = () => spansOf(rootOf(requestId)?.traceId ?? '').filter((span) => span.name === 'attempt');
  await until(() => attempts().length === 2, 'both attempts');
  expect(attempts().map(({ status, attributes }) => [attributes['pfqs.outcome'], status])).toEqual([
    ['http_status', 2],
    ['delivered', 0],
  ]);
});

test.each([
  ['no header', undefined],
  ['zeros', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`],
  ['another form', 'not-a-trace'],
])('a quote with %s begins a trace of its own', async (what, traceparent) => {
  const requestId = `rq-quote-${what.replaceAll(' ', '-')}`;
  const headers = { 'x-request-id': requestId, ...(traceparent !== undefined && { traceparent }) };
  expect((await api.quote({}, { headers })).status).toBe(200);
  await until(() => rootOf(requestId) !== undefined, 'the span of the request');
  const { traceId = '', spanId, parentSpanId } = rootOf(requestId) ?? {};
  expect(traceId).toMatch(/^(?!0{32})[0-9a-f]{32}$/);
  expect(parentSpanId).toBe('');
  await until(() => spanOf(traceId, 'store quote') !== undefined, 'the span of the insert');
  expect(spanOf(traceId, 'store quote')?.parentSpanId).toBe(spanId);
});

test('no span holds a key, a secret, a signature, a body or an address', () => {
  const all = collector.bodies.join('\n');
  expect(all).not.toContain(api.keys.test);
  expect(all).not.toContain(receiver.url);
  expect(all).not.toContain('merchant_finance_url');
  expect(findLeaks(all)).toEqual([]);
});

test('every line about an attempt names request, notification and workflow', () => {
  const lines = worker.logs.map((line) => JSON.parse(line) as Record<string, unknown>);
  const attempts = lines.filter(({ msg }) => msg === 'attempt' || msg === 'workflow started');
  expect(attempts.length).toBeGreaterThan(3);
  for (const { requestId, notificationId, workflowId, generation } of attempts) {
    expect(requestId).toEqual(expect.stringMatching(/^rq/));
    expect(workflowId).toBe(`notification/${String(notificationId)}/${String(generation)}`);
  }
});

interface Attribute {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

interface Export {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly status?: { readonly code?: number };
        readonly attributes: readonly Attribute[];
        readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
      }[];
    }[];
  }[];
}

/** An OpenTelemetry collector that takes OTLP over HTTP as JSON, and keeps it. */
async function startTraceCollector() {
  const spans: ReturnType<typeof read> = [];
  const bodies: string[] = [];
  const emit = emittedBy('traces');
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      bodies.push(body);
      emit(`${body}\n`);
      if (request.url === '/v1/traces') spans.push(...read(JSON.parse(body) as Export));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

const named = (attributes: readonly Attribute[]) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0]]));

function read({ resourceSpans }: Export) {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ parentSpanId = '', status, attributes, links = [], ...span }) => ({
        ...span,
        service: String(named(resource.attributes)['service.name']),
        parentSpanId,
        /** 2: an error. */
        status: status?.code ?? 0,
        attributes: named(attributes),
        links,
      })),
    ),
  );
}
