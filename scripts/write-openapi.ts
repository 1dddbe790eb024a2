import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openApiDocument } from '../contracts/openapi';

/** Writes the OpenAPI document; `--out DIR` writes it elsewhere, for the drift check. */
const at = process.argv.indexOf('--out');
const directory = at === -1 ? join(__dirname, '../contracts') : (process.argv[at + 1] ?? '.');
writeFileSync(join(directory, 'openapi.json'), `${JSON.stringify(openApiDocument(), null, 2)}\n`);
