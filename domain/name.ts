/** An emoji, with a skin tone and its presentation where it has them. */
const EMOJI = String.raw`\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?`;
/** What belongs to an emoji although it shows nothing by itself: U+FE0F behind one (or in a keycap), and U+200D between two. */
const OF_EMOJI = new RegExp(
  String.raw`(?<=\p{Extended_Pictographic}\p{Emoji_Modifier}?|\p{Regional_Indicator})\uFE0F|(?<=[0-9#*])\uFE0F(?=\u20E3)|(?<=${EMOJI})\u200D(?=\p{Extended_Pictographic})`,
  'gu',
);
/** Characters that show nothing, or change how others are shown: a control, a direction mark, half of a pair, U+200B, a blank. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]/u;
const WHITE_SPACE = /\p{White_Space}/u;
/** What other programs make of UTF-8 that they take for Windows-1252 (of é, £, –), and of bytes that they cannot read. */
const MISREAD = /[\u00C2\u00C3][\u00A1-\u00BF\u0178\u2030\u0153]|\u00E2\u20AC.|\uFFFD/u;

/**
 * Why a text is no name for shoppers: it contains a character that they cannot see, or that looks like another one,
 * or a program has taken its UTF-8 for something else.
 * @param name in NFC, without white space at either end
 * @returns the fault, to follow the name of a field, with code point and position (in characters, from 1) or what was misread; null when there is none
 */
export function nameFault(name: string): string | null {
  const misread = MISREAD.exec(name);
  if (misread !== null)
    return `was read in the wrong character set ("${misread[0]}" in it): open and save the file as UTF-8`;
  const emoji = new Set([...name.matchAll(OF_EMOJI)].map(({ index }) => index));
  let [index, position, before] = [0, 0, ''];
  for (const character of name) {
    position += 1;
    const where = `${codePoint(character)} at character ${position}`;
    if (WHITE_SPACE.test(character) && character !== ' ')
      return `must not contain white space other than single spaces (${where})`;
    if (character === ' ' && before === ' ') return `must not contain two spaces in a row (${where})`;
    if (HIDDEN.test(character) && !emoji.has(index))
      return `must not contain characters that show nothing (${where})`;
    before = character;
    index += character.length;
  }
  return null;
}

const codePoint = (character: string) =>
  `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;

/** Two names with the same key look alike: compatibility forms, case and what shows nothing do not count. */
export function nameKey(name: string): string {
  const shown = name.normalize('NFKC').replaceAll(/\p{Default_Ignorable_Code_Point}/gu, '');
  // Upper case first folds what has no lower case of its own, such as the sharp s.
  return shown.toUpperCase().toLowerCase().normalize('NFKC');
}
