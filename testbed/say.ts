const startedAt = Date.now();

/** Progress, with the seconds since the start, on standard error. */
export const say = (line: string) =>
  console.error(`${((Date.now() - startedAt) / 1_000).toFixed(0)} s: ${line}`);
