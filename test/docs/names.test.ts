import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command } from 'commander';
import { OPERATOR_EVENT_KINDS } from '../../domain/operator-event';
import type { OpsDeps } from '../../ops/call';
import { buildProgram } from '../../ops/program';
import { SETTING_GROUPS } from '../../runtime/config/settings';
import { groupsOf, projectFiles, read, root } from './tree';

/** What the handbook names is there: commands with their options, settings, metrics, alerts, files, npm scripts. */
// What has been is told in the past tense.
const pages = projectFiles.filter((file) => file.endsWith('.md') && file !== 'docs/changelog.md');
const handbook = pages.filter((file) => file.startsWith('docs/operations'));
const code = projectFiles
  .filter((file) => /\.(ts|cjs|mjs|sh|yml)$/.test(file))
  .map(read)
  .join('\n');

const program = buildProgram({} as OpsDeps);
const isCommand = (word = '') => program.commands.some((one) => one.name() === word);
/** `a|b` is two commands. */
const alternatives = (word: string) => word.split(/\\?\|/);

/** Command lines of `ops` in a text: behind its name, or at the beginning of a code span. */
const commandLines = (text: string) =>
  [/\bops (?:-- )?([a-z-]+(?:[ \\|][^`\n#]*)?)/g, /`([a-z-]+[ \\|][^`\n#]*)/g]
    .flatMap((pattern) => groupsOf(text, pattern))
    .map((line) => line.trim().split(/ +/))
    .filter(([first]) => isCommand(first));

/** What of a command line the program does not know. */
function unknown([first = '', second = '', ...rest]: readonly string[]): string[] {
  return alternatives(second).flatMap((name) => {
    let command = program;
    const words = [first, name, ...rest];
    for (let next: Command | undefined; ; words.shift()) {
      next = command.commands.find((one) => one.name() === alternatives(words[0] ?? '')[0]);
      if (next === undefined) break;
      command = next;
    }
    const isVerb = command.commands.length > 0 && /^[a-z][a-z-]*$/.test(words[0] ?? '');
    const options = words.filter((word) => /^--[a-z]/.test(word) && word !== '--json' && word !== '--help');
    const missing = options.filter((option) => !command.options.some(({ long }) => long === option));
    return [...(isVerb ? [`${first} ${words[0]}`] : []), ...missing.map((option) => `${first} ${option}`)];
  });
}

test.each(pages)('%s names commands of ops as they are', (file) => {
  expect(commandLines(read(file)).flatMap(unknown)).toEqual([]);
  expect(groupsOf(read(file), /`ops ([a-z-]+)/g).filter((name) => !isCommand(name))).toEqual([]);
});

test.each(handbook)('%s names settings and metrics that exist', (file) => {
  const text = read(file);
  const settings = Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group));
  const inCode = (name: string) => settings.includes(name) || new RegExp(`\\b${name}\\b`).test(code);
  const names = groupsOf(text, /`([A-Z][A-Z\d]*(?:_[A-Z\d]+)+)(?=[`=])/g);
  const metrics = groupsOf(text, /\b(pfqs_\w+)/g).map((name) => name.replace(/_(?:bucket|sum|count)$/, ''));
  expect([...names, ...metrics].filter((name) => !inCode(name))).toEqual([]);
});

test.each(pages)('%s names files and folders that exist', (file) => {
  const folders = new Set(projectFiles.map((path) => path.split('/')[0]));
  const named = groupsOf(read(file), /`((?:[\w-]+\/)+(?:[\w.-]+)?)`/g);
  const ours = named.filter((path) => folders.has(path.split('/')[0] ?? ''));
  // Some are named from their page, and some without their ending.
  const isThere = (path: string) =>
    [root, dirname(join(root, file))].some((from) =>
      ['', '.ts', '.test.ts', '.system.ts'].some((ending) => existsSync(join(from, path + ending))),
    );
  expect(ours.filter((path) => !isThere(path))).toEqual([]);
});

test.each(pages)('%s names npm scripts that exist', (file) => {
  const scriptsOf = (folder: string) => JSON.parse(read(join(folder, 'package.json'))).scripts as object;
  const known = { ...scriptsOf(''), ...(file.startsWith('clients/') && scriptsOf('clients/typescript')) };
  const named = groupsOf(read(file), /npm run (?:-s )?([a-z:]+)/g);
  expect(named.filter((name) => !(name in known))).toEqual([]);
});

test('every metric of ours is explained', () => {
  const served = projectFiles
    .filter((file) => /^(api|runtime|worker)\/.*\.ts$/.test(file))
    .flatMap((file) => groupsOf(read(file), /\b(pfqs_\w+)/g));
  expect(served.length).toBeGreaterThan(30);
  const watch = read('docs/operations/watch.md');
  expect(served.filter((name) => !watch.includes(`\`${name}\``))).toEqual([]);
});

test('every setting is read', () => {
  const readers = /^(api|bin|db|dev|ops|runtime|worker)\/(?!config\/settings\.ts).*\.ts$/;
  const text = projectFiles
    .filter((file) => readers.test(file))
    .map(read)
    .join('\n');
  const names = Object.values(SETTING_GROUPS).flatMap((group) => Object.keys(group));
  // @temporalio/envconfig reads these.
  const ours = names.filter((name) => !name.startsWith('TEMPORAL_TLS'));
  expect(ours.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([]);
});

test('every kind of operator event is explained', () => {
  const page = read('docs/operations/webhooks.md');
  expect(OPERATOR_EVENT_KINDS.filter((kind) => !page.includes(`- \`${kind}\``))).toEqual([]);
});
