/**
 * Writes the digest of every image of ours into Dockerfile and docker-compose.yml, behind its tag, as a registry states it
 * now: `node scripts/pin-images.mjs`, at each release (docs/operations/upgrade.md). Run again it renews them. It asks
 * `docker buildx imagetools` or `skopeo`. Nothing is written unless every digest was found.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = process.argv[2] ?? join(import.meta.dirname, '..');
/** A tag is obligatory: it says which line of releases a renewed digest is taken from. */
const LINES = {
  Dockerfile: /^(FROM )([a-z0-9][\w./-]*:[\w.-]+)(?:@\S+)?/gm,
  'docker-compose.yml': /^( +image: )([a-z0-9][\w./-]*:[\w.-]+)(?:@\S+)?$/gm,
};
const TOOLS = {
  docker: ['buildx', 'imagetools', 'inspect', '--format', '{{.Manifest.Digest}}'],
  skopeo: ['inspect', '--no-tags', '--format', '{{.Digest}}'],
};

try {
  const texts = Object.entries(LINES).map(([name, line]) => {
    const file = join(root, name);
    const text = readFileSync(file, 'utf8');
    return [file, text.replaceAll(line, (_all, before, image) => `${before}${image}@${digestOf(image)}`)];
  });
  for (const [file, text] of texts) writeFileSync(file, text);
} catch (error) {
  console.error(`${error.message}\nNothing was changed.`);
  process.exitCode = 1;
}

/** Of the list for all platforms. @throws when no tool states one. */
function digestOf(image) {
  const faults = [];
  for (const [tool, args] of Object.entries(TOOLS)) {
    try {
      const named = tool === 'skopeo' ? `docker://${image}` : image;
      const options = { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000 };
      const printed = execFileSync(tool, [...args, named], options).trim();
      if (/^sha256:[0-9a-f]{64}$/.test(printed)) {
        console.log(`${image}@${printed}`);
        return printed;
      }
      faults.push(`${tool} printed no digest: ${printed.slice(0, 200)}`);
    } catch (error) {
      faults.push(`${tool}: ${error.code === 'ENOENT' ? 'not installed' : error.message.trim()}`);
    }
  }
  throw new Error(`No digest of ${image}.\n${faults.join('\n')}`);
}
