import { z } from 'zod';
import { port } from './setting-types';

/** Settings of the embedded stack, which `npm start` brings up. */
export const stackSettings = {
  DATA_DIR: z.string().min(1).default('.data').describe('Where it keeps its data.'),
  POSTGRES_PORT: port.default(54_329).describe('Port of the embedded Postgres.'),
  TEMPORAL_PORT: port.default(7233).describe('Port of the embedded Temporal.'),
  TEMPORAL_UI_PORT: port.default(8233).describe("Port of Temporal's web page."),
  SHOP_PORT: port.default(8444).describe('Port of the demo shop.'),
  RECEIVER_PORT: port.default(8445).describe("Port of the demo partner's receiver."),
  TOOLS_DIR: z
    .string()
    .optional()
    .describe(
      'Where programs that were built or downloaded once are kept. Else `~/.cache/partner-finance-quote-service`, or a folder ' +
        'under the temporary one.',
    ),
} as const;
