import type { Command } from 'commander';
import { idOf, wholeNumber, type IdKind } from './arguments';
import type { Call } from './call';
import type { Answer } from './output';

/** Most rows that a list prints unless told otherwise; enough to fill a few screens. */
const DEFAULT_LIMIT = 50;
const HIGHEST_LIMIT = 100_000;

/** What a list in pages is asked for. */
export interface Page<Id = string> {
  readonly limit: number;
  readonly after?: Id;
}

/** The option `--limit`. */
export const limited = (list: Command, byDefault = DEFAULT_LIMIT) =>
  list.option(
    '--limit <n>',
    `most rows shown, 1 to ${HIGHEST_LIMIT}`,
    wholeNumber(1, HIGHEST_LIMIT),
    byDefault,
  );

/** The options `--after` and `--limit`. @param what is listed. */
export const inPages = (list: Command, what: IdKind, { byDefault = DEFAULT_LIMIT } = {}) =>
  limited(
    list.option('--after <id>', `only those behind this ${what} in the list: the next page`, idOf(what)),
    byDefault,
  );

/** Adds to a page that is full the command that shows the next one. */
export function paged<One>(
  { args, options }: Call<Page<string | number>>,
  { text, wide = text, ...rest }: Answer,
  found: readonly One[],
  idOf: (one: One) => string | number,
): Answer {
  const last = found.length === options.limit ? found.at(-1) : undefined;
  if (last === undefined) return { ...rest, text, wide };
  const next = `\nThere may be more: ${['ops', ...without(args), '--after', String(idOf(last))].map(quoted).join(' ')}`;
  return { ...rest, text: text + next, wide: wide + next };
}

/** The arguments but for an `--after` and its value. */
function without(args: readonly string[]): string[] {
  return args.filter((arg, at) => !/^--after(=|$)/.test(arg) && args[at - 1] !== '--after');
}

/** As a shell takes it. */
const quoted = (arg: string) =>
  /^[\w@%+=:,./…-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`;
