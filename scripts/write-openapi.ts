import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { internalOpenApiDocument } from './openapi/internal-document';
import { openApiDocument } from './openapi/document';

/** Writes the OpenAPI documents; `--out DIR` writes it elsewhere, for the drift check. */
const at = process.argv.indexOf('--out');
const directory = at === -1 ? join(__dirname, '../contracts') : (process.argv[at + 1] ?? '.');
const documents = { 'openapi.json': openApiDocument(), 'internal-openapi.json': internalOpenApiDocument() };
for (const [name, document] of Object.entries(documents)) {
  writeFileSync(join(directory, name), `${JSON.stringify(document, null, 2)}\n`);
}
