import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runDirectory } from '../../testbed/temporary-directory';

const root = join(__dirname, '../..');
const entryPoints = readdirSync(join(root, 'bin')).filter(
  (file) => file.endsWith('.ts') && file !== 'main.ts',
);

test.each(entryPoints)(
  '%s answers --help, and does nothing else',
  async (file) => {
    const directory = runDirectory('entry-point');
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      ['--import', join(root, 'node_modules/tsx/dist/loader.mjs'), join(root, 'bin', file), '--help'],
      { cwd: directory, env: { PATH: process.env['PATH'] } },
    );
    expect([stdout, stderr]).toEqual([expect.stringMatching(/^Usage: /), '']);
    expect(readdirSync(directory)).toEqual([]);
  },
  60_000,
);
