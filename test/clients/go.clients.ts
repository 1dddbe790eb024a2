import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileNeeds } from '../support/needs';
import { findGenerator, type Generator } from './generators';
import { testClient } from './scene';

fileNeeds('Go', 'oapi-codegen', 'ogen');

const GENERATORS: Readonly<Partial<Record<Generator, (document: string) => string[]>>> = {
  'oapi-codegen': (document) => [
    '-generate',
    'types,client',
    '-package',
    'client',
    '-o',
    'client/client.gen.go',
    document,
  ],
  ogen: (document) => ['--target', 'client', '--package', 'client', '--clean', document],
};

for (const [name, args] of Object.entries(GENERATORS))
  testClient({
    name,
    async make({ folder, document, run }) {
      mkdirSync(join(folder, 'client'));
      await run(join(await findGenerator(name as Generator), name), args(document));
      await run('go', ['vet', './...']);
      await run('go', ['build', '-o', 'main', '.']);
      return [join(folder, 'main')];
    },
  });
