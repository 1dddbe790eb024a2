import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

const root = join(__dirname, '../..');
const entryPoints = readdirSync(join(root, 'bin')).filter(
  (file) => file.endsWith('.ts') && file !== 'main.ts',
);

test.each(entryPoints)(
  '%s answers --help, and does nothing else',
  async (file) => {
    const directory = await temporaryDirectory('entry-point');
    try {
      for (const argument of ['--help', '-h']) {
        const { stdout, stderr } = await promisify(execFile)(
          process.execPath,
          ['--import', join(root, 'node_modules/tsx/dist/loader.mjs'), join(root, 'bin', file), argument],
          { cwd: directory, env: { PATH: process.env['PATH'] } },
        );
        expect({ file, stdout, stderr }).toEqual({
          file,
          stdout: expect.stringMatching(/^Usage: /),
          stderr: '',
        });
      }
      expect(readdirSync(directory)).toEqual([]);
    } finally {
      await removeDirectory(directory);
    }
  },
  60_000,
);
