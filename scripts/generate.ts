/**
 * Writes the files of one kind that are made from our own code (`npm run openapi`, `guide`, `settings`). With `--check` it writes nothing,
 * and fails when a file of any kind would change.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLadder } from './documentation/ladder';
import { settingsPage } from './documentation/settings';
import { withSignedCommand, withSignedRequest } from './documentation/signed-example';
import { withStateDiagram } from './documentation/state-diagrams';
import { internalOpenApiDocument, openApiDocument } from './openapi/document';

const json = (document: object) => `${JSON.stringify(document, null, 2)}\n`;

/** Each function gets the present text of its file: people write the pages around what is generated. */
const FILES: Readonly<Record<string, Readonly<Record<string, (before: string) => string>>>> = {
  openapi: {
    'contracts/openapi.json': () => json(openApiDocument()),
    'contracts/internal-openapi.json': () => json(internalOpenApiDocument()),
  },
  guide: {
    'docs/partner-guide.md': (page) => withLadder(withSignedRequest(page)),
    'examples/verify-webhook/README.md': withSignedCommand,
    'docs/architecture.md': withStateDiagram,
  },
  settings: { 'docs/settings.md': settingsPage },
};

const [, , wanted] = process.argv;
const check = wanted === '--check';
for (const [kind, files] of Object.entries(FILES)) {
  if (!check && kind !== wanted) continue;
  for (const [name, make] of Object.entries(files)) {
    const file = join(__dirname, '..', name);
    const before = readFileSync(file, 'utf8');
    const after = make(before);
    if (after === before) continue;
    if (!check) writeFileSync(file, after);
    else {
      console.error(`${name} does not follow from its source; run npm run ${kind}.`);
      process.exitCode = 1;
    }
  }
}
