import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { repeatedNames, type JsonPath } from '../../contracts/validate';
import { printable } from '../output';
import { ImportRefused, refuseFaults, refuseFile, type Fault } from './rows';

/** 20,000 products take about 8 MB of JSON. */
const MOST_BYTES = 10 * 1024 * 1024;
/** New rows take one to two milliseconds each: the largest file is written in under a minute. */
export const MOST_ROWS = 20_000;

/** Reads a whole file, or the given stream for `-`. @throws ImportRefused when it is too large or not UTF-8. */
export async function readText(path: string, stdin: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  const source = path === '-' ? stdin : createReadStream(path);
  try {
    for await (const chunk of source) {
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Buffer);
      size += bytes.length;
      if (size > MOST_BYTES) refuseFile(`The file is larger than ${MOST_BYTES / 1024 / 1024} MiB.`);
      chunks.push(bytes);
    }
  } catch (error) {
    if (error instanceof ImportRefused) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    const container =
      code === 'ENOENT'
        ? '. A container does not see the files of its machine: give - in place of the name, and < FILE'
        : '';
    refuseFile(`The file cannot be read: ${printable(message)}${container}`);
  }
  const bytes = Buffer.concat(chunks);
  refuseForeignFile(bytes);
  const nul = bytes.indexOf(0);
  if (nul !== -1)
    refuseFile(`The file holds a NUL byte (at byte ${nul + 1}): it is not a text file in UTF-8.`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    const before = new TextDecoder('utf-8').decode(bytes).split('\uFFFD', 1)[0] ?? '';
    const line = before.split(/\r\n|\n|\r/).length;
    return refuseFile(
      `The file is not valid UTF-8, first in line ${line}: Excel's "CSV (Comma delimited)" is not. ${SAVE_AS}`,
    );
  }
}

const SAVE_AS = 'In Excel, save it as "CSV UTF-8 (Comma delimited)".';

/** Files that people take for CSV, by their first bytes. */
const FOREIGN: readonly (readonly [start: string, what: string])[] = [
  ['fffe', 'is in UTF-16, as Excel\'s "Unicode Text" is'],
  ['feff', 'is in UTF-16'],
  ['504b0304', 'is an Excel workbook or another ZIP file, not text'],
  ['d0cf11e0', 'is an old Excel workbook, not text'],
];

function refuseForeignFile(bytes: Buffer): void {
  const start = bytes.subarray(0, 4).toString('hex');
  const found = FOREIGN.find(([of]) => start.startsWith(of));
  if (found !== undefined) refuseFile(`The file ${found[1]}. ${SAVE_AS}`);
}

/** Parses JSON that must be a list of at most MOST_ROWS. @throws ImportRefused */
export function parseJson(text: string): unknown[] {
  if (text.trim() === '') refuseFile('The file is empty: a JSON list of objects is expected.');
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return refuseFile(`The file is not valid JSON: ${printable((error as Error).message)}`);
  }
  if (!Array.isArray(parsed)) return refuseFile('The file must hold a JSON list: [ { … }, { … } ].');
  refuseFaults(repeatedNames(text).map(repeatedFault));
  return checkRowCount(parsed);
}

const repeatedFault = ([at, ...names]: JsonPath): Fault => ({
  row: Number(at) + 1,
  field: names.join('.'),
  message: 'is stated twice: leave one of them out',
});

export function checkRowCount<T>(rows: T[]): T[] {
  if (rows.length === 0) refuseFile('The file holds no rows.');
  if (rows.length > MOST_ROWS)
    refuseFile(`The file holds ${rows.length} rows; at most ${MOST_ROWS} are taken at once.`);
  return rows;
}
