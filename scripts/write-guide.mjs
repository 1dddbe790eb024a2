/**
 * Puts the verifiers of examples/ into the partner guide, where a comment names them, so that what is read is what is
 * tested. With `--check` it writes nothing, and fails when the guide would change.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = new URL('..', import.meta.url);
const guide = fileURLToPath(new URL('docs/partner-guide.md', root));
const LANGUAGES = { mjs: 'js', py: 'python', php: 'php', java: 'java', go: 'go' };

const before = readFileSync(guide, 'utf8');
const after = before.replace(
  /<!-- from (\S+)\.(\w+) -->\n\n```\w+\n[\s\S]*?\n```\n/g,
  (_whole, path, extension) => {
    const code = readFileSync(new URL(`${path}.${extension}`, root), 'utf8').trimEnd();
    return `<!-- from ${path}.${extension} -->\n\n\`\`\`${LANGUAGES[extension]}\n${code}\n\`\`\`\n`;
  },
);
if (after !== before && process.argv.includes('--check')) {
  console.error('docs/partner-guide.md does not show the verifiers of examples/; run npm run guide.');
  process.exitCode = 1;
} else if (after !== before) {
  writeFileSync(guide, after);
}
