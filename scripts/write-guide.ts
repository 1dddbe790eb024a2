/**
 * Puts into the pages for partners what is made elsewhere, so that what is read is what is tested: the verifiers of examples/, where a
 * comment names them, and the test event, signed. With `--check` it writes nothing, and fails when a page would change.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withSignedCommand, withSignedRequest } from './documentation/signed-example';

const root = join(__dirname, '..');
const LANGUAGES: Record<string, string> = { mjs: 'js', py: 'python', php: 'php', java: 'java', go: 'go' };

const withVerifiers = (page: string) =>
  page.replace(
    /<!-- from (\S+)\.(\w+) -->\n\n```\w+\n(?:[\s\S]*?\n)??```\n/g,
    (_whole, path: string, extension: string) => {
      const code = readFileSync(join(root, `${path}.${extension}`), 'utf8').trimEnd();
      return `<!-- from ${path}.${extension} -->\n\n\`\`\`${LANGUAGES[extension]}\n${code}\n\`\`\`\n`;
    },
  );

const PAGES: Record<string, (page: string) => string> = {
  'docs/partner-guide.md': (page) => withSignedRequest(withVerifiers(page)),
  'examples/verify-webhook/README.md': withSignedCommand,
};

for (const [file, follow] of Object.entries(PAGES)) {
  const before = readFileSync(join(root, file), 'utf8');
  const after = follow(before);
  if (after === before) continue;
  if (process.argv.includes('--check')) {
    console.error(`${file} does not follow from examples/ and contracts/; run npm run guide.`);
    process.exitCode = 1;
  } else writeFileSync(join(root, file), after);
}
