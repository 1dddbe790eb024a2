const LONGEST_REFERENCE = 64;

interface Part {
  readonly characters: string;
  readonly least: number;
  readonly most: number;
}

// A part. Ranges of a class are read later, as `[a-a-a-…` has too many readings.
const PART = /(?:(\\d)|([A-Za-z0-9_./-])|\[([A-Za-z0-9_./-]+)\])(\?|\{(\d{1,2})(?:,(\d{1,2}))?\})?/y;

/**
 * Reads the format of a lender's references: parts that are each a character, `\d` or a class such as
 * `[A-Z0-9]`, with `?`, `{n}` or `{n,m}` behind it. It is checked by counting, so that no format makes a
 * check slow.
 * @returns null when it is invalid, matches nothing, or allows more than 64 characters
 */
export function readReferenceFormat(format: string): ((reference: string) => boolean) | null {
  const parts = readParts(format);
  return parts && ((reference) => reference.length <= LONGEST_REFERENCE && matches(reference, parts));
}

/**
 * A reference of the format, as long as it allows.
 * @param pick chooses a number below `of`
 */
export const sampleReference = (format: string, pick: (of: number) => number): string =>
  (readParts(format) ?? [])
    .map(({ characters, most }) =>
      Array.from({ length: most }, () => characters.charAt(pick(characters.length))).join(''),
    )
    .join('');

function readParts(format: string): readonly Part[] | null {
  const parts: Part[] = [];
  PART.lastIndex = 0;
  while (PART.lastIndex < format.length) {
    const match = PART.exec(format);
    if (match === null) return null;
    const [, digit, literal, members, count, low, high] = match;
    const least = count === '?' ? 0 : Number(low ?? 1);
    const most = count === '?' ? 1 : Number(high ?? low ?? 1);
    const characters = digit ? '0123456789' : (literal ?? charactersOf(members ?? ''));
    if (characters === null || most < least) return null;
    parts.push({ characters, least, most });
  }
  const longest = parts.reduce((sum, { most }) => sum + most, 0);
  if (longest === 0 || longest > LONGEST_REFERENCE || parts.every(({ least }) => least === 0)) return null;
  return parts;
}

/** @returns null for a range whose ends are in the wrong order, or of different kinds */
function charactersOf(members: string): string | null {
  const allowed = new Set<string>();
  for (const [text] of members.matchAll(/[A-Za-z0-9]-[A-Za-z0-9]|./g)) {
    const [from, to] = text.length === 3 ? [text.charAt(0), text.charAt(2)] : [text, text];
    const sameKind = [/[A-Z]/, /[a-z]/, /\d/].some((kind) => kind.test(from) && kind.test(to));
    if (from > to || (text.length === 3 && !sameKind)) return null;
    for (let code = from.charCodeAt(0); code <= to.charCodeAt(0); code += 1)
      allowed.add(String.fromCharCode(code));
  }
  return [...allowed].join('');
}

/** Follows every index that the text may have been read up to, part by part. */
function matches(text: string, parts: readonly Part[]): boolean {
  let reached = new Set([0]);
  for (const { characters, least, most } of parts) {
    const next = new Set<number>();
    for (const start of reached) {
      for (let taken = 0; taken <= most; taken += 1) {
        if (taken >= least) next.add(start + taken);
        if (start + taken >= text.length || !characters.includes(text.charAt(start + taken))) break;
      }
    }
    reached = next;
  }
  return reached.has(text.length);
}
