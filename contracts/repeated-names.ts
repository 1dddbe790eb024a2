/** Where a name stands in JSON: names of fields, and positions in lists from 0. */
export type JsonPath = readonly (string | number)[];

interface Open {
  /** Names so far; null for a list. */
  readonly names: Set<string> | null;
  /** Present name, or position in the list. */
  at: string | number;
}

/**
 * The names that an object of JSON states again, in the order of the text. `JSON.parse` keeps the last
 * value without a word, other readers the first.
 * @param text valid JSON
 * @param deepest objects further in than this many levels are not looked at
 */
export function repeatedNames(text: string, deepest = Number.POSITIVE_INFINITY): JsonPath[] {
  const found: JsonPath[] = [];
  const open: Open[] = [];
  let string = '';
  for (let at = 0; at < text.length; at += 1) {
    switch (text.charCodeAt(at)) {
      case 0x22 /* " */: {
        const last = endOfString(text, at);
        string = text.slice(at + 1, last);
        at = last;
        break;
      }
      case 0x7b /* { */:
        open.push({ names: new Set(), at: '' });
        break;
      case 0x5b /* [ */:
        open.push({ names: null, at: 0 });
        break;
      case 0x7d /* } */:
      case 0x5d /* ] */:
        open.pop();
        break;
      case 0x2c /* , */: {
        const list = open.at(-1);
        if (typeof list?.at === 'number') list.at += 1;
        break;
      }
      // The string before a colon is a name.
      case 0x3a /* : */: {
        const object = open.at(-1);
        if (object?.names == null || open.length > deepest) break;
        object.at = string.includes('\\') ? (JSON.parse(`"${string}"`) as string) : string;
        if (object.names.has(object.at)) found.push(open.map((one) => one.at));
        object.names.add(object.at);
        break;
      }
      default:
    }
  }
  return found;
}

// The position of the quote that ends a string: the first one after an even number of backslashes.
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); ; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === 0x5c /* \ */) backslashes += 1;
    if (backslashes % 2 === 0) return end;
  }
}
