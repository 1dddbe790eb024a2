/**
 * Puts the signed test event and the retry ladder into the pages for partners, and the state diagrams into the page on architecture. With
 * `--check` it writes nothing, and fails when a page would change.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLadder } from './documentation/ladder';
import { withSignedCommand, withSignedRequest } from './documentation/signed-example';
import { withStateDiagrams } from './documentation/state-diagrams';

const root = join(__dirname, '..');
const PAGES: Record<string, (page: string) => string> = {
  'docs/partner-guide.md': (page) => withLadder(withSignedRequest(page)),
  'examples/verify-webhook/README.md': withSignedCommand,
  'docs/architecture.md': withStateDiagrams,
};

for (const [file, follow] of Object.entries(PAGES)) {
  const before = readFileSync(join(root, file), 'utf8');
  const after = follow(before);
  if (after === before) continue;
  if (process.argv.includes('--check')) {
    console.error(`${file} does not follow from its source; run npm run guide.`);
    process.exitCode = 1;
  } else writeFileSync(join(root, file), after);
}
