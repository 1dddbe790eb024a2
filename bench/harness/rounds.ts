/** Measured values by name. Times are in milliseconds, and their names end in `_ms`. */
export type Figures = Readonly<Record<string, number>>;

/**
 * Measures each contender once in every turn. Who goes first rotates, and every other turn goes backwards, so that what the
 * machine does besides, and what the one before left to do, falls on all: the median of the turns' ratios hardly moves with it.
 */
export async function takeTurns<Name extends string>(
  turns: number,
  contenders: Readonly<Record<Name, () => Promise<Figures>>>,
): Promise<Record<Name, Figures[]>> {
  const names = Object.keys(contenders) as Name[];
  const rounds = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Figures[]>;
  for (let turn = 0; turn < turns; turn += 1) {
    const first = turn % names.length;
    const order = [...names.slice(first), ...names.slice(0, first)];
    for (const name of turn % 2 === 0 ? order : order.toReversed())
      rounds[name].push(await contenders[name]());
  }
  return rounds;
}

export function medians(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, median(rounds.map((one) => figure(one, name)))]));
}

export function medianRatio(
  rounds: readonly Figures[],
  to: readonly Figures[],
  of: string | ((round: Figures) => number),
): number {
  const pick = typeof of === 'string' ? (round: Figures | undefined) => figure(round, of) : of;
  return median(rounds.map((round, turn) => pick(round) / pick(to[turn] ?? {})));
}

/** NaN when it was not measured. */
export const figure = (round: Figures | undefined, name: string): number => round?.[name] ?? Number.NaN;

/** The median, the mean of the two in the middle when their number is even. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const low = sorted[Math.ceil(half) - 1] ?? Number.NaN;
  const high = sorted[Math.floor(half)] ?? Number.NaN;
  return (low + high) / 2;
}

/** How times are spread. */
export function spread(times: Iterable<number>) {
  const sorted = Float64Array.from(times).toSorted();
  const at = (share: number) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99), worst_ms: at(1) };
}

/** Milliseconds of the system's monotonic clock, which all processes of a machine share. */
export const monotonicMs = (): number => Number(process.hrtime.bigint()) / 1e6;
