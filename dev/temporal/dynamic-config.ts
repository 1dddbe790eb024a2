/** What a server of today does by default (1.32), for the older one in a CLI that was built with Go (1.29). */
export const DYNAMIC_CONFIG = {
  'matching.useNewMatcher': true,
  'system.enableActivityEagerExecution': true,
} as const;
