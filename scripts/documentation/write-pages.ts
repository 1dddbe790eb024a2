import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PAGES, renderedFile } from '../../api/documentation/served-files';
import { documentationPage } from './documentation-page';

/** Renders the pages that partners are served; `--check` writes nothing, and fails when one would change. */
const root = join(__dirname, '../..');
for (const [file, path] of Object.entries(PAGES)) {
  const html = documentationPage({ file, text: readFileSync(join(root, file), 'utf8') });
  const rendered = join(root, renderedFile(path));
  if (existsSync(rendered) && readFileSync(rendered, 'utf8') === html) continue;
  if (process.argv.includes('--check')) {
    console.error(`${renderedFile(path)} does not follow from ${file}; run npm run guide.`);
    process.exitCode = 1;
  } else {
    mkdirSync(dirname(rendered), { recursive: true });
    writeFileSync(rendered, html);
  }
}
