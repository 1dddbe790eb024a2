/**
 * Makes the documentation site in `api/site`, from which the API serves it: VitePress renders the Markdown, and Scalar draws the reference
 * in the browser. Does nothing when the site is up to date. Where VitePress is not installed, as after a first `npm start`, the site is the
 * Markdown, behind a page that lists it.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Page, PICTURES, plainFiles, ROOT, sitePages, SOURCES } from './pages';

const SITE = join(ROOT, 'api/site');
const STAMP = join(ROOT, '.cache/site');
const VITEPRESS = join(ROOT, 'node_modules/vitepress/bin/vitepress.js');

function put(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** @throws when a page links to what is not served, or VitePress fails: with what it said. */
export async function ensureSite(): Promise<void> {
  const { guide, others } = sitePages();
  const plain = plainFiles();
  const hash = createHash('sha256').update(JSON.stringify([guide, others, plain]));
  for (const name of readdirSync(__dirname)) hash.update(readFileSync(join(__dirname, name)));
  for (const file of ['package-lock.json', 'contracts/openapi.json', ...Object.keys(PICTURES)])
    hash.update(readFileSync(join(ROOT, file)));
  const whole = existsSync(VITEPRESS);
  const content = hash.digest('hex');
  const stamp = existsSync(SITE) && existsSync(STAMP) ? readFileSync(STAMP, 'utf8') : '';
  if (stamp === content || (!whole && stamp.startsWith(content))) return;
  // What VitePress reads; its configuration and its theme lead here. Two processes may build at the same time.
  mkdirSync(dirname(STAMP), { recursive: true });
  const source = mkdtempSync(`${STAMP}-`);
  const made = join(source, '.vitepress/dist');
  if (whole) await render(source, [...guide, ...others]);
  else put(join(made, 'index.html'), listOf(others));
  for (const [path, text] of plain) put(join(made, path), text);
  // `npm start` writes files for its own account alone, and a build may be installed for another.
  await promisify(execFile)('chmod', ['-R', 'a+rX', made]);
  rmSync(SITE, { recursive: true, force: true });
  try {
    renameSync(made, SITE);
  } catch (error) {
    // Another process was a moment faster, with the same site.
    if (!existsSync(SITE)) throw error;
  }
  rmSync(source, { recursive: true, force: true });
  put(STAMP, whole ? content : `${content} as Markdown`);
}

async function render(source: string, pages: readonly Page[]): Promise<void> {
  for (const { path, text } of pages) put(join(source, `${path}.md`), text);
  for (const [file, path] of Object.entries(PICTURES)) cpSync(join(ROOT, file), join(source, 'public', path));
  for (const name of ['index.md', 'reference.md']) cpSync(join(__dirname, name), join(source, name));
  put(join(source, '.vitepress/config.mts'), "export { default } from '../../../site/config.mjs';\n");
  put(join(source, '.vitepress/theme/index.js'), "export { default } from '../../../../site/theme.js';\n");
  // Links to these are files, no pages.
  const env = { ...process.env, VITE_EXTRA_EXTENSIONS: SOURCES.join(','), SITE_SOURCE: source };
  await promisify(execFile)(process.execPath, [VITEPRESS, 'build', source], { env });
}

const listOf = (pages: readonly Page[]) => `<!doctype html>
<html lang="en">
<title>Documentation</title>
<h1>Documentation</h1>
<ul>
${[{ path: '/guide', title: 'Partner guide' }, ...pages].map(({ path, title }) => `<li><a href="/docs${path}.md">${title}</a></li>`).join('\n')}
<li><a href="/openapi.json">OpenAPI document</a></li>
</ul>
<p>This is its Markdown. <code>npm run site</code> makes pages of it, with a search and a reference that makes calls, for the next start.</p>
`;

if (require.main === module) void ensureSite();
