import { createHash } from 'node:crypto';
import { TraceFlags, type SpanContext } from '@opentelemetry/api';

const FORM = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}$/;

/** Reads a W3C `traceparent`; null for what is none. Whether to keep the trace is our decision, not the sender's. */
export function parseTraceParent(text: string | null | undefined): SpanContext | null {
  const [, traceId, spanId] = FORM.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return null;
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
}

export function formatTraceParent({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** The same for every step of a notification, for what was stored by a process without traces. */
export function derivedParent(notificationId: string): SpanContext {
  const digest = createHash('sha256').update(notificationId).digest('hex');
  const [traceId, spanId] = [digest.slice(0, 32), digest.slice(32, 48)];
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
}
