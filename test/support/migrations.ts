import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runDirectory } from '../../testbed/temporary-directory';

/** A migration in drizzle's journal. */
interface Entry {
  readonly idx: number;
  readonly when: number;
  readonly tag: string;
}

/** A copy of this release's migrations, with this made of their journal. */
async function copied(change: (entries: readonly Entry[]) => readonly Entry[]): Promise<string> {
  const folder = join(runDirectory('migrations'), 'migrations');
  await cp(join(__dirname, '../../db/migrations'), folder, { recursive: true });
  const file = join(folder, 'meta/_journal.json');
  const journal = JSON.parse(await readFile(file, 'utf8')) as { entries: Entry[] };
  await writeFile(file, JSON.stringify({ ...journal, entries: change(journal.entries) }));
  return folder;
}

let made = 0;

/** This release's migrations, and one more, which is later than those that a file has asked for before. */
export async function migrationsWith(text: string): Promise<string> {
  made += 1;
  const folder = await copied((entries) => {
    const last = entries.at(-1)!;
    return [...entries, { ...last, idx: last.idx + 1, when: last.when + made, tag: '9999_next' }];
  });
  await writeFile(join(folder, '9999_next.sql'), text);
  return folder;
}

/** The migrations before the one of this name. */
export const migrationsBefore = (name: string): Promise<string> =>
  copied((entries) =>
    entries.slice(
      0,
      entries.findIndex(({ tag }) => tag.endsWith(`_${name}`)),
    ),
  );
