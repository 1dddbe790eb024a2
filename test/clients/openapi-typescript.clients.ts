import { symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileNeeds } from '../support/needs';
import { findGenerator } from './generators';
import { testClient } from './scene';

fileNeeds('npm generators');

testClient({
  name: 'openapi-typescript',
  async make({ folder, document, run }) {
    const modules = join(await findGenerator('npm generators'), 'node_modules');
    symlinkSync(modules, join(folder, 'node_modules'));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    await run(process.execPath, [
      join(modules, 'openapi-typescript/bin/cli.js'),
      document,
      '-o',
      'schema.ts',
    ]);
    await run(process.execPath, [join(modules, 'typescript/bin/tsc'), '--project', '.']);
    return [process.execPath, join(folder, 'dist/main.js')];
  },
});
