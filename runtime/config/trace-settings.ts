import { z } from 'zod';

/** Settings of traces, by the names that OpenTelemetry gives them. */
export const traceSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe(
      'Collector that traces are sent to (OTLP over HTTP, `<address>/v1/traces`). Without it none are made.',
    ),
  OTEL_TRACES_SAMPLER_ARG: z.coerce
    .number()
    .min(0)
    .max(1)
    .default(1)
    .describe('Share of the traces that is kept, 0 to 1; API and workers need the same.'),
} as const;
