import { InvalidArgumentError, Option } from 'commander';

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

/** A span as `duration` reads it, of at most so many days. */
export const durationUpTo = (days: number) => (text: string) => {
  const seconds = duration(text);
  if (seconds <= days * SECONDS.d) return seconds;
  throw new InvalidArgumentError(`It must be at most ${days}d.`);
};

/** A moment, or how long ago it was. */
export type MomentOrAgo = { readonly at: Date } | { readonly agoSeconds: number };

/** `36h`, `2026-11-03` (midnight UTC) or `2026-11-03T14:00Z`. */
export function momentOrAgo(text: string): MomentOrAgo {
  if (/^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d))?$/.test(text)) {
    const at = new Date(text);
    if (!Number.isNaN(at.getTime())) return { at };
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

/** Comma-separated words out of a closed list. */
export const wordsOf = (allowed: readonly string[]) => (text: string) => {
  const words = list(text);
  if (words.length > 0 && words.every((word) => allowed.includes(word))) return words;
  throw new InvalidArgumentError(`Allowed are ${allowed.join(', ')}.`);
};

/** `--environment sandbox|live`. */
export const environmentOption = (description: string) =>
  new Option('--environment <environment>', description).choices(['sandbox', 'live']);

/** A whole number in a range. */
export const wholeNumber = (low: number, high: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= low && value <= high) return value;
  throw new InvalidArgumentError(`It must be a whole number from ${low} to ${high}.`);
};

/** `yes` or `no`. */
export function yesOrNo(text: string): boolean {
  if (text !== 'yes' && text !== 'no') throw new InvalidArgumentError('It must be yes or no.');
  return text === 'yes';
}

/** `P100001,P100002`. */
export function list(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');
}

/** The number of a row that has one instead of an id: a change, an event. */
export const rowNumber = wholeNumber(1, 999_999_999);

/** Most that anything to many does in a second. */
export const HIGHEST_PER_SECOND = 200;

/** Arguments of a `--since` option. @param byDefault as a person reads it. */
export const sinceOption = (mostDays: number, byDefault: string, what = 'how far back') =>
  [
    '--since <duration>',
    `${what}, at most ${mostDays}d; default: ${byDefault}`,
    durationUpTo(mostDays),
  ] as const;
