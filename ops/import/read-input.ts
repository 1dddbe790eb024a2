import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';
import { ImportRefused, refuseFile } from './faults';

/** 20,000 products take about 8 MB of JSON. */
const MOST_BYTES = 10 * 1024 * 1024;
/** New rows take one to two milliseconds each: the largest file is written in under a minute. */
const MOST_ROWS = 20_000;
/** The format needs three levels; a bound keeps nonsense from reaching deeper code. */
const DEEPEST = 16;

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
    refuseFile(`The file cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
  const bytes = Buffer.concat(chunks);
  const nul = bytes.indexOf(0);
  if (nul !== -1)
    refuseFile(`The file holds a NUL byte (at byte ${nul + 1}): it is not a text file in UTF-8.`);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return refuseFile('The file is not valid UTF-8.');
  }
}

/** Parses JSON that must be a list of at most MOST_ROWS. @throws ImportRefused */
export function parseRows(text: string): unknown[] {
  if (text.trim() === '') refuseFile('The file is empty: a JSON list of objects is expected.');
  if (deepest(text) > DEEPEST) refuseFile(`The file is nested deeper than ${DEEPEST} levels.`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return refuseFile(
      `The file is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  if (!Array.isArray(parsed)) return refuseFile('The file must hold a JSON list: [ { … }, { … } ].');
  return checkRowCount(parsed);
}

/** @throws ImportRefused when there are none or too many. */
export function checkRowCount<T>(rows: T[]): T[] {
  if (rows.length === 0) refuseFile('The file holds no rows.');
  if (rows.length > MOST_ROWS)
    refuseFile(`The file holds ${rows.length} rows; at most ${MOST_ROWS} are taken at once.`);
  return rows;
}

/** Depth of brackets outside strings, without recursion. */
function deepest(text: string): number {
  let depth = 0;
  let most = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[\]{}]/gs)) {
    if (token === '[' || token === '{') most = Math.max(most, ++depth);
    else if (token === ']' || token === '}') depth--;
  }
  return most;
}
