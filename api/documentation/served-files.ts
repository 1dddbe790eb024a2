import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

const ROOT = join(__dirname, '../..');
const VERIFIERS = 'examples/verify-webhook';

/** Path on the public listener of each page of the repository that partners read; all of them are under `/docs/`. */
export const PAGES: Readonly<Record<string, string>> = {
  'docs/partner-guide.md': '/docs/guide',
  [`${VERIFIERS}/README.md`]: '/docs/verify-webhook',
  'clients/typescript/README.md': '/docs/typescript-client',
};

/** What may lie in the folder of the verifiers besides their source: what a compiler or an interpreter left there. */
const SOURCE = /\.(mjs|py|php|java|go|mod)$/;

export interface ServedFile {
  readonly file: string;
  readonly path: string;
  readonly text: string;
}

/** What a page is made into: HTML, and Markdown whose links lead to what is served. `npm run guide` makes both, and they are committed. */
export const renderedFile = (path: string, form: 'html' | 'md') =>
  `api/documentation/pages/${posix.basename(path)}.${form}`;

/** Path of a page as Markdown. */
export const markdownPath = (path: string) => `${path}.md`;

/** The pages in both forms, and the source files that they link. @throws when the installation lacks one of them. */
export function readServedFiles(): Readonly<Record<'pages' | 'markdown' | 'sources', ServedFile[]>> {
  const read = (file: string, path: string) => ({ file, path, text: readFileSync(join(ROOT, file), 'utf8') });
  const pages = Object.values(PAGES);
  return {
    pages: pages.map((path) => read(renderedFile(path, 'html'), path)),
    markdown: pages.map((path) => read(renderedFile(path, 'md'), markdownPath(path))),
    sources: sourceFiles().map(([file, path]) => read(file, path)),
  };
}

/** Lets a page load and run nothing but its one style sheet. */
export function pagePolicy(html: string): string {
  const [, style = ''] = /<style>(.*?)<\/style>/s.exec(html) ?? [];
  const hash = createHash('sha256').update(style).digest('base64');
  return `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
}

/** The source of the verifiers: file of the repository and path on the public listener. */
export function sourceFiles(): (readonly [file: string, path: string])[] {
  return readdirSync(join(ROOT, VERIFIERS), { withFileTypes: true })
    .filter((folder) => folder.isDirectory())
    .flatMap(({ name }) => readdirSync(join(ROOT, VERIFIERS, name)).map((file) => `${name}/${file}`))
    .filter((name) => SOURCE.test(name))
    .map((name) => [`${VERIFIERS}/${name}`, `/docs/verify-webhook/${name}`] as const);
}
