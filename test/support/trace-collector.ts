import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { emittedBy } from './emitted';

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
export type TraceCollector = Awaited<ReturnType<typeof startTraceCollector>>;

export async function startTraceCollector() {
  const spans: ReturnType<typeof read> = [];
  const bodies: string[] = [];
  const emit = emittedBy('traces');
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
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
