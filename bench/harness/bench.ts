import { parseArgs } from 'node:util';
import { watchedDirectory } from '../../testbed/watchdog';
import { brokenBounds, printFindings, type Findings } from './report';
import { say } from '../../testbed/say';

export interface Bench {
  /** Should the bench be killed, the processes that have this folder on their command line end, and the folder is removed. */
  readonly directory: string;
  /** Adds what closes something that was opened. All of it runs when the bench ends, the last one first. */
  onEnd(close: () => Promise<unknown>): void;
}

type Options = Readonly<Record<string, string | number | boolean>>;

/**
 * Runs a bench: reads its options, gives it a folder, prints what it found and closes what it opened. With `--json` the
 * findings are one JSON object on standard output. The exit code is 1 when a bound is broken or the bench fails.
 * @param defaults of its options, by name; the default of an option also says of which type it is.
 */
export function runBench<Defaults extends Options>(
  name: string,
  defaults: Defaults,
  run: (bench: Bench, options: Defaults) => Promise<Findings>,
): void {
  const { json, ...options } = readOptions({ ...defaults, json: false });
  // `json` is the only property that was added.
  void main(name, json, (bench) => run(bench, options as never));
}

async function main(name: string, json: boolean, run: (bench: Bench) => Promise<Findings>): Promise<void> {
  const { directory, remove } = await watchedDirectory(`bench-${name}`);
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const found = await run({ directory, onEnd: (close) => closers.push(close) });
    printFindings(found, json);
    const broken = brokenBounds(found);
    if (broken.length > 0) {
      say(`broken: ${broken.join(', ')}`);
      process.exitCode = 1;
    }
  } catch (error) {
    // At once: the end of what is still at work may fail, too.
    console.error(error);
    process.exitCode = 1;
  } finally {
    say('stopping');
    for (const close of closers.toReversed()) await close();
    await remove();
  }
}

/** @throws when an option is unknown, or not of the type of its default. */
function readOptions<Defaults extends Options>(defaults: Defaults): Defaults {
  const types = Object.entries(defaults).map(
    ([name, value]) => [name, { type: typeof value === 'boolean' ? 'boolean' : 'string' }] as const,
  );
  const { values } = parseArgs({ options: Object.fromEntries(types) });
  const given = Object.entries(values).map(([name, value]) => {
    if (typeof defaults[name] !== 'number') return [name, value] as const;
    if (!Number.isFinite(Number(value))) throw new Error(`--${name} must be a number`);
    return [name, Number(value)] as const;
  });
  return { ...defaults, ...Object.fromEntries(given) };
}

export const pause = async (ms: number): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, Math.max(0, ms)));
