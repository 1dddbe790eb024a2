import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/**
 * The files of HEAD as `git archive` packs them, in a new folder that is in no repository and below no `node_modules`.
 * @throws when the temporary folder is itself in one.
 */
export function unpackTree(root: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'partner-finance-release-'));
  for (let above = dirname(folder); above !== dirname(above); above = dirname(above))
    for (const name of ['.git', 'node_modules'])
      if (existsSync(join(above, name)))
        throw new Error(`${above} has ${name}: set TMPDIR to a folder that is in no repository`);
  const tarball = execFileSync('git', ['archive', '--format=tar', 'HEAD'], {
    cwd: root,
    maxBuffer: 1_000_000_000,
  });
  execFileSync('tar', ['-x', '-C', folder], { input: tarball });
  return folder;
}
