import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { prebuiltBundle } from './temporal';

/**
 * The workflow bundle of another release: the one of today with a word changed wherever it stands.
 * @throws when the word is not there.
 * @returns the path of its code.
 */
export async function bundleWith(directory: string, from: string, to: string): Promise<string> {
  const code = await readFile((await prebuiltBundle()).codePath, 'utf8');
  if (!code.includes(from)) throw new Error(`there is no ${from} in the workflows`);
  const path = join(directory, `bundle-${to.replaceAll(/\W+/g, '-')}.js`);
  await writeFile(path, code.replaceAll(from, to));
  return path;
}
