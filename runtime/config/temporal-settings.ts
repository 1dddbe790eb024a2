import { z } from 'zod';

const flag = z.enum(['true', 'false', '1', '0']);
const text = z.string();

/** Where Temporal is and how to get in, by the names that all Temporal tools share (`@temporalio/envconfig` reads them). */
export const temporalSettings = {
  TEMPORAL_ADDRESS: text
    .regex(/^[^\s/]+:\d+$/, 'must be host:port')
    .optional()
    .describe('`host:port`. Without it 127.0.0.1 and `STACK_PORT`, where `npm start` brings one of its own.'),
  TEMPORAL_NAMESPACE: text.optional().describe('Its namespace; without it `default`.'),
  TEMPORAL_API_KEY: text.optional().describe('API key (Temporal Cloud). Implies TLS.'),
  TEMPORAL_TLS: flag.optional().describe('Whether to use TLS.'),
  TEMPORAL_TLS_SERVER_NAME: text.optional().describe('Name that its certificate must have.'),
  TEMPORAL_TLS_SERVER_CA_CERT_PATH: text.optional().describe('Authority to trust, PEM file.'),
  TEMPORAL_TLS_CLIENT_CERT_PATH: text.optional().describe('Our certificate, PEM file.'),
  TEMPORAL_TLS_CLIENT_KEY_PATH: text.optional().describe('Its key, PEM file.'),
  TEMPORAL_UI_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Address of Temporal's web page; `ops` then gives the address of each delivery there."),
} as const;

export type TemporalSettings = Readonly<z.infer<z.ZodObject<typeof temporalSettings>>>;
