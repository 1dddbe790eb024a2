const startedAt = Date.now();

/** Progress, with the seconds since the start. It is not what was asked for, so it goes to standard error. */
export const say = (line: string) =>
  console.error(`${((Date.now() - startedAt) / 1_000).toFixed(0)} s: ${line}`);

/** Prints the figures, rounded to so many digits: one JSON object, or a line each. */
export function printFigures(figures: Readonly<Record<string, number>>, json: boolean, digits: number): void {
  const rounded = Object.entries(figures).map(
    ([name, value]) => [name, Number(value.toFixed(digits))] as const,
  );
  if (json) console.log(JSON.stringify(Object.fromEntries(rounded)));
  else for (const [name, value] of rounded) console.log(`${name}: ${value}`);
}
