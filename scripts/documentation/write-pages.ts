import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { PAGES, renderedFile } from '../../api/routes/get-documentation';
import { documentationPage } from './documentation-page';
import { servedMarkdown } from './served-markdown';

/** Renders the pages that partners are served; `--check` writes nothing, and fails when one would change. */
const root = join(__dirname, '../..');
for (const [file, path] of Object.entries(PAGES)) {
  const page = { file, text: readFileSync(join(root, file), 'utf8') };
  put(renderedFile(path, 'html'), documentationPage(page), file);
  put(renderedFile(path, 'md'), servedMarkdown(page), file);
}

function put(name: string, text: string, source: string): void {
  const rendered = join(root, name);
  if (existsSync(rendered) && readFileSync(rendered, 'utf8') === text) return;
  if (process.argv.includes('--check')) {
    console.error(`${name} does not follow from ${source}; run npm run guide.`);
    process.exitCode = 1;
  } else {
    mkdirSync(dirname(rendered), { recursive: true });
    writeFileSync(rendered, text);
  }
}
