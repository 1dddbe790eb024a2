/** Dynamic configuration as production has it (docs/operations/run.md). Eager workflow start is the server's default. */
export const DYNAMIC_CONFIG = {
  'matching.useNewMatcher': true,
  'matching.enableFairness': true,
  'system.enableActivityEagerExecution': true,
} as const;
