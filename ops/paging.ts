import type { Answer, Call } from './call';

/** Arguments of an `--after` option. */
export const afterOption = (what: string) =>
  ['--after <id>', `only those behind this ${what} in the list: the next page`] as const;

/** Adds to a page that is full the command that shows the next one. */
export function paged<One>(
  { args, options }: Call,
  { text, wide = text, ...rest }: Answer,
  found: readonly One[],
  idOf: (one: One) => string | number,
): Answer {
  const last = found.length === options['limit'] ? found.at(-1) : undefined;
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
