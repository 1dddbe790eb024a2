import { readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { ProgramWithFiles } from '../../testbed/project-process';
import { demand } from './on-demand';

const root = join(__dirname, '../..');
/** What processes under test may load. */
const FOLDERS =
  'activities api bin contracts db dev domain ops outbound runtime timing worker workflows testbed test/support';

interface Compiled {
  /** Runs what was compiled of a file: `node PROGRAM bin/api.ts …`. */
  readonly program: string;
}

/**
 * Compiles the product once for a run, file by file. The suites start some two hundred processes of it; from sources (`--import tsx`)
 * each needs a second of CPU more until it serves.
 */
export async function compileProduct(directory: string): Promise<Compiled> {
  // Not a dependency of ours: the compiler of tsx.
  const esbuild = createRequire(require.resolve('tsx'))('esbuild') as {
    build: (options: object) => Promise<unknown>;
  };
  const entryPoints = FOLDERS.split(' ').flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /(?<!\.d)\.ts$/.test(name))
      .map((name) => join(folder, name)),
  );
  const outdir = join(directory, 'compiled');
  const program = join(directory, 'compiled.cjs');
  // Each file keeps its place, so what is read from beside the code is found.
  writeFileSync(
    program,
    `const [fs, { _load }, path] = ['fs', 'module', 'path'].map((name) => require('node:' + name));
     const root = ${JSON.stringify(root)};
     const compiled = (file) => ${JSON.stringify(outdir)} + file.slice(root.length, -2) + 'js';
     require.extensions['.ts'] = (module, file) => module._compile(fs.readFileSync(compiled(file), 'utf8'), file);
     process.argv.splice(1, 2, path.join(root, process.argv[2]));
     _load(process.argv[1], null, true);`,
  );
  await esbuild.build({
    absWorkingDir: root,
    entryPoints,
    outdir,
    outbase: root,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    logLevel: 'warning',
  });
  return { program };
}

/** The command that runs a file of the service, such as `bin/api.ts`. @param options.node options of Node, before the file */
export async function serviceCommand(
  file: string,
  options: { readonly node?: readonly string[]; readonly args?: readonly string[] } = {},
): Promise<ProgramWithFiles['command']> {
  const { program } = await demand<Compiled>('compiled');
  const { node = [], args = [] } = options;
  return (own) => [process.execPath, ...node, program, file, ...args, `--files=${own('.')}`];
}
