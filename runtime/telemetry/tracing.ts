import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash } from 'node:crypto';
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
  TraceFlags,
  type SpanContext,
} from '@opentelemetry/api';
import type * as Exporter from '@opentelemetry/exporter-trace-otlp-http';
import type * as Resources from '@opentelemetry/resources';
import type * as Sdk from '@opentelemetry/sdk-trace';
import type { Config } from '../config/config';

interface DeliveryStep {
  readonly name: string;
  readonly notificationId: string;
  readonly traceParent: string | null;
  readonly durationMs: number;
  readonly endedMs?: number;
  readonly attributes: Attributes;
  readonly failure: string | null;
}

export type Tracing = NonNullable<ReturnType<typeof openTracing>>;
export type RequestTracer = Pick<Tracing, 'begin'>;
export type RequestSpan = ReturnType<Tracing['begin']>;

/** Longest wait for the collector at a stop, in milliseconds. */
const LAST_EXPORT_MS = 3_000;

/** A process' traces for a collector, without keys, signatures, bodies and addresses; null: none. */
export function openTracing(
  {
    OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
    OTEL_TRACES_SAMPLER_ARG: share,
  }: Pick<Config, 'OTEL_EXPORTER_OTLP_ENDPOINT' | 'OTEL_TRACES_SAMPLER_ARG'>,
  service: 'pfqs-api' | 'pfqs-worker',
) {
  if (endpoint === undefined) return null;
  // Loaded only where a collector is named, as they take a quarter of the time in which an API process starts.
  const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http') as typeof Exporter;
  const { resourceFromAttributes } = require('@opentelemetry/resources') as typeof Resources;
  const sdk = require('@opentelemetry/sdk-trace') as typeof Sdk;
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, '')}/v1/traces`,
    timeoutMillis: LAST_EXPORT_MS,
  });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({ 'service.name': service }),
    // Decides by the trace's id, which is ours, so that all processes agree.
    sampler: new sdk.TraceIdRatioBasedSampler(share),
    spanProcessors: [new sdk.BatchSpanProcessor({ exporter, scheduledDelayMillis: 1_000 })],
  });
  const tracer = provider.getTracer('pfqs');
  const active = new AsyncLocalStorage<Span>();

  return {
    /** @param request.traceParent the caller's header, to which the span is only linked */
    begin(request: { method: string; requestId: string; traceParent: string | undefined }) {
      const { method, requestId, traceParent } = request;
      const callers = parseTraceParent(traceParent);
      const span = tracer.startSpan(
        method,
        {
          kind: SpanKind.SERVER,
          attributes: { 'http.request.method': method, 'pfqs.request_id': requestId },
          // A caller that chose our trace's id could add to others' traces.
          links: callers === null ? [] : [{ context: callers }],
        },
        ROOT_CONTEXT,
      );
      return {
        within: (task: () => void): void => active.run(span, task),
        end({ route, status }: { readonly route: string; readonly status: number }): void {
          span.updateName(`${method} ${route}`);
          span.setAttributes({ 'http.route': route, 'http.response.status_code': status });
          if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
          span.end();
        },
      };
    },
    async step<T>(name: string, task: () => Promise<T>): Promise<T> {
      const parent = active.getStore();
      const context = parent === undefined ? ROOT_CONTEXT : trace.setSpan(ROOT_CONTEXT, parent);
      const span = tracer.startSpan(name, { attributes: { 'db.system.name': 'postgresql' } }, context);
      try {
        return await active.run(span, task);
      } catch (error) {
        // Without its message, which may contain parameters.
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw error;
      } finally {
        span.end();
      }
    },
    current: (): string | null => {
      const span = active.getStore();
      return span === undefined ? null : formatTraceParent(span.spanContext());
    },
    record(step: DeliveryStep): void {
      const { name, notificationId, traceParent, durationMs, endedMs = Date.now() } = step;
      const parent = parseTraceParent(traceParent) ?? derivedParent(notificationId);
      const span = tracer.startSpan(
        name,
        {
          startTime: endedMs - durationMs,
          kind: name === 'attempt' ? SpanKind.CLIENT : SpanKind.INTERNAL,
          attributes: { 'pfqs.notification_id': notificationId, ...step.attributes },
        },
        trace.setSpanContext(ROOT_CONTEXT, parent),
      );
      if (step.failure !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: step.failure });
      span.end(endedMs);
    },
    close: (): Promise<void> => provider.shutdown().catch(() => undefined),
  };
}

const FORM = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/;

/** Reads a W3C `traceparent`; null for any other text. Its flag is ignored, as we decide what is kept. */
function parseTraceParent(text: string | null | undefined): SpanContext | null {
  const [, traceId, spanId] = FORM.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return null;
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
}

function formatTraceParent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** A parent, the same for every step, for notifications stored without a trace. */
function derivedParent(notificationId: string): SpanContext {
  const digest = createHash('sha256').update(notificationId).digest('hex');
  const [traceId, spanId] = [digest.slice(0, 32), digest.slice(32, 48)];
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
}
