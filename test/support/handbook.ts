import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** @returns the text of a page of the operations handbook. */
export const readPage = (page: string) =>
  readFileSync(join(__dirname, `../../docs/operations/${page}.md`), 'utf8');

/** A YAML file that a page shows, found by a text in it. */
export function fileOfPage(page: string, has: string): string {
  const blocks = [...readPage(page).matchAll(/^```yaml\n([^]*?)^```/gm)].map(([, block = '']) => block);
  const found = blocks.find((block) => block.includes(has));
  if (found === undefined) throw new Error(`${page}.md shows no file with ${has}`);
  return found;
}
