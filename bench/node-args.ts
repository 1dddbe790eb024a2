/** As the API is started in production (docs/operations/run.md). */
export const API_NODE_ARGS: readonly string[] = [
  '--max-semi-space-size=32',
  '--no-allocation-site-pretenuring',
];
