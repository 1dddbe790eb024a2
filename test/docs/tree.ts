import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

export const root = resolve(__dirname, '../..');

/** As .gitignore has them. */
const KEPT_OUT = new Set(['.git', 'node_modules', 'dist', '.data', 'coverage', '.cache', 'api/site']);

/** Every file of the project, without Git, from its root. */
export const projectFiles: readonly string[] = within('');

function within(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true })
    .filter(({ name }) => !KEPT_OUT.has(name) && !KEPT_OUT.has(join(folder, name)))
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? within(path) : [path];
    });
}

/** A file of the project as text. */
export const read = (file: string) => readFileSync(join(root, file), 'utf8');

/** What the first group of an expression is, wherever the expression matches. */
export const groupsOf = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, group = '']) => group);

/** Anchors of the headings in Markdown, as GitHub makes them: lower case, punctuation gone, spaces become hyphens. */
export const anchorsOf = (markdown: string) =>
  groupsOf(markdown, /^#{1,6} +(.+)$/gm).map((heading) =>
    heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
      .replaceAll(' ', '-'),
  );
