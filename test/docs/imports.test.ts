import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { projectFiles, root } from './tree';

/** The table of folders in architecture.md says what each folder imports, no more and no less. */
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8');
const rows = [...page.matchAll(/^\| `(\w+)\/` +\|[^|]+\|([^|]+)\|$/gm)].map(
  ([, folder = '', imports = '']) => ({ folder, imports }),
);
const named = (text: string) => [...text.matchAll(/`(\w+)`/g)].map(([, name = '']) => name).toSorted();

function importedBy(folder: string): string[] {
  const files = projectFiles.filter((file) => file.startsWith(`${folder}/`) && file.endsWith('.ts'));
  const targets = files.flatMap((file) =>
    [...readFileSync(join(root, file), 'utf8').matchAll(/(?:from|import\() ?'(\.[^']+)'/g)].map(
      ([, path = '']) => relative(root, resolve(root, dirname(file), path)).split(sep)[0] ?? '',
    ),
  );
  return [...new Set(targets)].filter((target) => target !== folder).toSorted();
}

test.each(rows.filter(({ imports }) => !/anything|all/.test(imports)))(
  '$folder/ imports what the page says: $imports',
  ({ folder, imports }) => {
    expect(importedBy(folder)).toEqual(named(imports));
  },
);
