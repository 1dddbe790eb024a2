import { z } from 'zod';

/** Settings of the embedded stack, which `npm start` brings up. */
export const stackSettings = {
  DATA_DIR: z.string().min(1).default('.data').describe('Where it keeps its data.'),
  STACK_PORT: z.coerce
    .number()
    .int()
    .min(1024)
    .max(60_000)
    .default(7233)
    .describe(
      'Port of the embedded Temporal. The others move with it: Postgres (+1), the web page of Temporal (+1000), shop (+1211), receiver (+1212).',
    ),
} as const;
