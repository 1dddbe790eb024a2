import { figure, medianRatio, medians, takeTurns, type Figures } from '../harness/rounds';

/** Starts a neighbour. @returns a function that ends it, waits until it has left no work, and returns figures of its own. */
export type Trouble = () => Promise<() => Promise<Figures>>;

/** One kind of neighbour, and the quiet partners beside it. */
export interface Part {
  readonly quiet: () => Promise<Figures>;
  readonly trouble: Trouble;
  /** Takes its place when the quiet ones are measured without it. Default: nothing. */
  readonly instead?: Trouble;
}

const nothing: Trouble = async () => async () => ({});

/**
 * Measures the quiet ones without and with the neighbour, in turn.
 * @returns all figures without and with the neighbour, and the ratio of each time of the quiet ones
 */
export async function measurePart(part: Part, pairs: number) {
  const { quiet, trouble, instead = nothing } = part;
  const during = (start: Trouble) => async () => {
    const end = await start();
    const times = await quiet();
    return { ...times, ...(await end()) };
  };
  // The first round after a start is not like the later ones.
  await quiet();
  const rounds = await takeTurns(pairs, { without: during(instead), beside: during(trouble) });
  const [without, beside] = [medians(rounds.without), medians(rounds.beside)];
  const ratios = Object.keys(without)
    .filter((name) => name.endsWith('_ms'))
    .map(
      (name) => [name.replace(/_ms$/, '_ratio'), medianRatio(rounds.beside, rounds.without, name)] as const,
    );
  return {
    without: { ...without, ...failuresOf(rounds.without) },
    beside: { ...beside, ...failuresOf(rounds.beside) },
    ratios: Object.fromEntries(ratios),
  };
}

/** Failures of all rounds together: the median would hide those of one. */
function failuresOf(rounds: readonly Figures[]): Figures {
  const names = Object.keys(rounds[0] ?? {}).filter((name) => name.endsWith('failures'));
  const sum = (name: string) => rounds.reduce((all, round) => all + figure(round, name), 0);
  return Object.fromEntries(names.map((name) => [name, sum(name)]));
}
