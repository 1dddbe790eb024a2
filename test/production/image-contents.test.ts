import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join, relative } from 'node:path';

const root = join(__dirname, '..', '..');

/** Our own source files that `npm run build` compiles into the image, with what each imports by name. */
function compiled(): { file: string; packages: string[] }[] {
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const listed = execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--listFilesOnly'], {
    cwd: root,
    encoding: 'utf8',
  });
  const files = listed
    .split('\n')
    .map((path) => relative(root, path.trim()))
    .filter((path) => path.endsWith('.ts') && !path.startsWith('..') && !path.includes('node_modules'));
  return files.map((file) => {
    const text = readFileSync(join(root, file), 'utf8');
    const imported = text.matchAll(
      /^(?:import|(?:import|export|\}) .*?from|.*?\bimport\() ?'([^'.][^']*)'\)?;?$/gm,
    );
    const names = [...imported].map(([, name = '']) => name);
    const packages = names
      .filter((name) => !name.startsWith('node:') && !builtinModules.includes(name))
      .map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
    return { file, packages };
  });
}

test('the image holds nothing of dev/, and imports only what it installs', () => {
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const files = compiled();
  const folders = new Set(files.map(({ file }) => file.split('/')[0]));
  expect([...folders]).toEqual(
    expect.arrayContaining(['activities', 'api', 'bin', 'db', 'domain', 'ops', 'runtime', 'workflows']),
  );
  for (const folder of ['dev', 'test', 'scripts', 'bench']) expect(folders).not.toContain(folder);

  const used = new Set(files.flatMap(({ packages }) => packages));
  expect([...used].filter((name) => !(name in dependencies))).toEqual([]);
  expect(Object.keys(dependencies).filter((name) => !used.has(name))).toEqual([]);
});
