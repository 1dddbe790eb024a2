/**
 * Values on their way to another thread: all as one text, and how long each is. A string costs about as much to carry
 * over as a thousand characters do, so that one long text is a third of the price of twelve strings a row.
 */
export interface PackedValues {
  readonly text: string;
  /** In UTF-16 code units; -1 for null. */
  readonly lengths: Int32Array;
}

export function packValues(values: readonly (string | number | null)[]): PackedValues {
  const lengths = new Int32Array(values.length);
  let text = '';
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at] ?? null;
    const piece = typeof value === 'string' ? value : value === null ? '' : String(value);
    text += piece;
    lengths[at] = value === null ? -1 : piece.length;
  }
  return { text, lengths };
}

/** Gives back what was packed; numbers as text. */
export function unpackValues({ text, lengths }: PackedValues): (string | null)[] {
  const values: (string | null)[] = [];
  let start = 0;
  for (const length of lengths) {
    values.push(length < 0 ? null : text.slice(start, start + length));
    start += Math.max(0, length);
  }
  return values;
}
