import { InvalidArgumentError, Option, type Command } from 'commander';
import { DEFAULT_OVERLAP_SECONDS } from '../db/keys';
import { resolveSpan, type MomentOrAgo } from '../db/notifications/recoverable';
import { RECOVERED_PER_SECOND } from '../db/notifications/recovery';
import type { Call } from './call';
import { commaSeparated, idOf, type IdName } from './ids';
import { textOf, type Answer } from './output';

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** `90d`, `24h`, `30m`, `10s` or `0` as seconds. */
export function duration(text: string): number {
  const match = /^(\d{1,7})([smhd])$/.exec(text);
  if (text === '0') return 0;
  if (match === null)
    throw new InvalidArgumentError('It must be a number with s, m, h or d behind it, such as 24h.');
  return Number(match[1]) * SECONDS[match[2] as keyof typeof SECONDS];
}

/** The same, or `never`: commander takes null for no value. */
export const durationOrNever = (text: string) => (text === 'never' ? text : duration(text));

/** `36h`, `2026-11-03` (midnight UTC) or `2026-11-03T14:00Z`. */
export function momentOrAgo(text: string): MomentOrAgo {
  if (/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/.test(text)) {
    const [at, day] = [new Date(text), new Date(text.slice(0, 10))];
    // 31 September is a moment of October to Node.
    if (!Number.isNaN(at.getTime()) && day.toISOString().startsWith(text.slice(0, 10))) return { at };
  }
  if (/^\d+[smhd]?$/.test(text)) return { agoSeconds: duration(text) };
  throw new InvalidArgumentError('It must be a span such as 36h, or a moment such as 2026-11-03T14:00Z.');
}

/** `2026-11` as the month's first day, `2026-11-01`. */
export function month(text: string): string {
  if (!/^20\d\d-(0[1-9]|1[0-2])$/.test(text))
    throw new InvalidArgumentError('It must be a year and a month, such as 2026-11.');
  return `${text}-01`;
}

/** Takes some of these words, comma-separated or by repeating the option. */
export function wordsOption(flags: string, description: string, allowed: readonly string[]): Option {
  const all = allowed.join(', ');
  return new Option(flags, `${description}: ${all}`).argParser((text, before?: readonly string[]) => {
    const words = commaSeparated(text);
    if (words.length > 0 && words.every((word) => allowed.includes(word)))
      return [...(before ?? []), ...words];
    throw new InvalidArgumentError(`Allowed are ${all}.`);
  });
}

export const environmentOption = (description: string) =>
  new Option('--environment <environment>', description).choices(['sandbox', 'live']);

export const wholeNumber = (low: number, high: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= low && value <= high) return value;
  throw new InvalidArgumentError(`It must be a whole number from ${low} to ${high}.`);
};

/** `--since` and `--until`. @param limits how far back it goes, at most and by default, as a person reads it. */
export const withSpan = (command: Command, what: string, limits: string, required = false) =>
  command
    .addOption(
      new Option('--since <moment>', `${what}: so long ago (36h), or 2026-11-03T14:00Z; ${limits}`)
        .argParser(momentOrAgo)
        .makeOptionMandatory(required),
    )
    .option('--until <moment>', 'and before this moment, or so long ago; default: now', momentOrAgo);

/** The span that a list was asked for, by the database's clock. Without `--until` it has no end. */
export async function spanOf(
  { db, options: { since, until } }: Pick<Call, 'db' | 'options'>,
  mostDays: number,
  defaultDays: number,
) {
  const from = since ?? { agoSeconds: defaultDays * SECONDS.d };
  const span = await resolveSpan(db, from, until, mostDays);
  return { since: span.since, until: until && span.until };
}

export const overlapOption = (what: string) =>
  new Option('--overlap <duration>', `how long ${what}, 0 to 7d`)
    .argParser(duration)
    .default(DEFAULT_OVERLAP_SECONDS, '24h');

const HIGHEST_PER_SECOND = 200;

export const perSecondOption = () =>
  new Option(
    '--per-second <n>',
    `most per second, 1 to ${HIGHEST_PER_SECOND}; default: ${RECOVERED_PER_SECOND}`,
  ).argParser(wholeNumber(1, HIGHEST_PER_SECOND));

const DEFAULT_LIMIT = 50;
const HIGHEST_LIMIT = 100_000;

export interface Page<Id = string> {
  readonly limit: number;
  readonly after?: Id;
}

export const limited = (list: Command, byDefault = DEFAULT_LIMIT) =>
  list.option(
    '--limit <n>',
    `most rows shown, 1 to ${HIGHEST_LIMIT}`,
    wholeNumber(1, HIGHEST_LIMIT),
    byDefault,
  );

export const inPages = (list: Command, what: IdName, { byDefault = DEFAULT_LIMIT } = {}) =>
  limited(
    list.option('--after <id>', `only those behind this ${what} in the list: the next page`, idOf(what)),
    byDefault,
  );

interface ListAnswer extends Answer {
  readonly json: readonly unknown[];
}

/** Adds to a page that is full the command that shows the next one. @param last id of the page */
export function paged(call: Call<Page<string | number>>, answer: ListAnswer, last?: string | number): Answer {
  const { json, text } = answer;
  if (last === undefined || json.length < call.options.limit) return answer;
  const { args } = call;
  const again = args.filter((arg, at) => !/^--after(=|$)/.test(arg) && args[at - 1] !== '--after');
  const next = ['ops', ...again, '--after', String(last)].map(quoted).join(' ');
  return { json, text: (most) => `${textOf(text, most)}\nThere may be more: ${next}` };
}

const quoted = (arg: string) =>
  /^[\w@%+=:,./…-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", String.raw`'\''`)}'`;
