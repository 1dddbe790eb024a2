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

const prefixed = (prefix: string) => new RegExp(`^${prefix}_\\w{1,40}$`);

/** What errors call a thing, how its ids look, and what may have become of one that is not found. */
export interface IdWords {
  readonly noun: string;
  readonly like: string;
  readonly form: RegExp;
  readonly hint?: string;
}

/** The number of a row that has one instead of an id. */
const ROW_NUMBER = /^[1-9]\d{0,8}$/;

/** What commands name by an id. */
export const IDS = {
  partner: { noun: 'Partner', like: 'P100001', form: /^P\d{6}$/ },
  merchant: { noun: 'Merchant', like: 'M123456', form: /^M\d{6}$/ },
  product: { noun: 'Product', like: 'prd_01K…', form: prefixed('prd') },
  lender: {
    noun: 'Lender',
    like: 'lender_a',
    form: /^[a-z][a-z0-9_]{1,31}$/,
    hint: ': ops lenders list shows those that do',
  },
  key: { noun: 'Key', like: 'key_01K…', form: prefixed('key') },
  serviceKey: { noun: 'Service key', like: 'svk_01K…', form: prefixed('svk') },
  endpoint: { noun: 'Endpoint', like: 'whe_01K…', form: prefixed('whe') },
  quote: { noun: 'Quote', like: 'qte_01K…', form: prefixed('qte'), hint: ', or its month has been dropped' },
  application: { noun: 'Application', like: 'app_01K…', form: prefixed('app') },
  notification: {
    noun: 'Notification',
    like: 'ntf_01K…',
    form: prefixed('ntf'),
    hint: ', or its month has been dropped',
  },
  recovery: { noun: 'Recovery', like: 'rcv_01K…', form: prefixed('rcv') },
  change: { noun: 'Change', like: '4711', form: ROW_NUMBER },
  event: { noun: 'Event', like: '4711', form: ROW_NUMBER },
  /** Of a change: any of the above, a build, a month. */
  subject: { noun: 'Subject', like: 'M123456', form: /^\S{1,120}$/, hint: ', and no change is about it' },
  /** Who made a change: a user or a key. */
  actor: { noun: 'User or key', like: 'jane', form: /^\S.{0,119}$/, hint: ', or has changed nothing' },
} as const satisfies Record<string, IdWords>;

export type IdKind = keyof typeof IDS;

/** An id that is about to be given away: its form counts, and nothing has it yet. */
export const newIdOf = (kind: IdKind) => (text: string) => {
  const { noun, like, form } = IDS[kind];
  if (form.test(text)) return text;
  throw new InvalidArgumentError(`It must be an id such as ${like} (${noun.toLowerCase()}).`);
};

/** Parsers of ids, which `checkIds` looks up before the command runs. */
const kinds = new WeakMap<object, IdKind>();
const lookedUp = <Parse extends object>(kind: IdKind, parse: Parse) => {
  kinds.set(parse, kind);
  return parse;
};
export const idKindOf = (parse: unknown): IdKind | null => kinds.get(parse as object) ?? null;

/** The id of something that exists. Every argument and option that takes one has this parser. */
export const idOf = (kind: IdKind) =>
  lookedUp(kind, (text: string) => {
    const id = newIdOf(kind)(text);
    return IDS[kind].form === ROW_NUMBER ? Number(id) : id;
  });

/** Several, comma-separated or one after the other. */
export const idsOf = (kind: IdKind) =>
  lookedUp(kind, (text: string, before: readonly string[] = []) => [
    ...before,
    ...list(text).map(newIdOf(kind)),
  ]);

/** Most that anything to many does in a second. */
export const HIGHEST_PER_SECOND = 200;

/** Arguments of a `--since` option. @param byDefault as a person reads it. */
export const sinceOption = (mostDays: number, byDefault: string, what = 'how far back') =>
  [
    '--since <duration>',
    `${what}, at most ${mostDays}d; default: ${byDefault}`,
    durationUpTo(mostDays),
  ] as const;
