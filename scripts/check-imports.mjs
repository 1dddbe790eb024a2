/**
 * Fails when a folder imports another one that the table in docs/architecture.md does not give it, or when the table gives it one that it
 * does not import. `by type` allows types alone; `by name` also allows values of `names.ts`.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

const root = join(import.meta.dirname, '..');
const read = (file) => readFileSync(join(root, file), 'utf8');
const files = execFileSync('git', ['ls-files', '*.ts'], { cwd: root, encoding: 'utf8' }).split('\n');

const ROW = /^\| `(\w+)\/` +\|[^|]+\|([^|]+)\|$/gm;
const ALLOWED = /`(\w+)`( by (?:name|type))?/g;
const IMPORT = /^(?:import|export)( type)? ([^'";]*?)from '(\.[^']+)'|\b(?:import|require)\('(\.[^']+)'\)/gm;

function importsOf(file) {
  return [...read(file).matchAll(IMPORT)].flatMap(([text, type, names, from, dynamic]) => {
    const path = relative('.', join(dirname(file), from ?? dynamic));
    const folder = path.split(sep)[0];
    if (folder === file.split(sep)[0]) return [];
    const isType =
      type !== undefined ||
      (names ?? '')
        .match(/\{(.*)\}/s)?.[1]
        .split(',')
        .every((name) => !name.trim() || name.trim().startsWith('type '));
    return [{ file, folder, path, isType: isType ?? false, text }];
  });
}

function faultsOf(folder, allowed) {
  const imported = files.filter((file) => file.startsWith(`${folder}/`)).flatMap(importsOf);
  const refused = imported.filter(({ folder: to, path, isType }) => {
    if (!allowed.has(to)) return true;
    const how = allowed.get(to);
    return how !== undefined && !isType && !(how === ' by name' && path.endsWith('/names'));
  });
  const unused = [...allowed.keys()].filter((to) => imported.every((one) => one.folder !== to));
  return [
    ...refused.map(({ file, text }) => `${file}: ${text.replaceAll(/\s+/g, ' ')}`),
    ...unused.map((to) => `${folder}/ imports nothing of ${to}/`),
  ];
}

const rows = [...read('docs/architecture.md').matchAll(ROW)].filter(
  ([, , text]) => !text.includes('anything'),
);
const faults = rows.flatMap(([, folder, text]) =>
  faultsOf(folder, new Map([...text.matchAll(ALLOWED)].map(([, to, how]) => [to, how]))),
);
if (rows.length < 10) faults.push('The table has gone.');
if (faults.length > 0) {
  console.error(`Against docs/architecture.md, "Folders and import rules":\n${faults.join('\n')}`);
  process.exitCode = 1;
}
