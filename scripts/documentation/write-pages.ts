import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import MarkdownIt from 'markdown-it';
import {
  markdownPath,
  PAGES,
  renderedFile,
  type ServedFile,
  sourceFiles,
} from '../../api/routes/get-documentation';

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

const pages = new Set(Object.values(PAGES));

/**
 * A page of the repository as Markdown whose links lead to what is served, to other pages in the same form.
 * @throws when it links to a file that is not served.
 */
function servedMarkdown({ file, text }: Pick<ServedFile, 'file' | 'text'>): string {
  // Fences stay as they are: what looks like a link in code is none.
  return text
    .split(/^(```[\s\S]*?^```$)/m)
    .map((part) =>
      part.startsWith('```')
        ? part
        : part.replaceAll(
            /\]\(([^)\s]+)\)/g,
            (_link, target: string) => `](${asMarkdown(servedTarget(file, target))})`,
          ),
    )
    .join('');
}

function asMarkdown(target: string): string {
  const [path = '', anchor] = target.split('#');
  const served = pages.has(path) ? markdownPath(path) : path;
  return anchor === undefined ? served : `${served}#${anchor}`;
}

const STYLE = `
:root { color-scheme: light dark; }
body { font: 1rem/1.6 system-ui, sans-serif; margin: 0 auto; max-width: 52rem; padding: 1.5rem 1rem 4rem; }
nav { border-bottom: 1px solid #8886; margin-bottom: 2rem; padding-bottom: .75rem; }
nav a { display: inline-block; margin-right: 1rem; }
h2 { border-bottom: 1px solid #8886; margin-top: 3rem; padding-bottom: .25rem; }
table { border-collapse: collapse; display: block; margin: 1rem 0; overflow-x: auto; }
th, td { border: 1px solid #8886; padding: .35rem .6rem; text-align: left; vertical-align: top; }
pre { background: #8881; border-radius: 6px; overflow-x: auto; padding: .9rem; }
code { font: .9em/1.5 ui-monospace, monospace; }
p code, li code { overflow-wrap: anywhere; }
blockquote { border-left: 4px solid #8886; margin: 1rem 0; padding: .1rem 1rem; }
summary { cursor: pointer; font-weight: 600; padding: .35rem 0; }
`;

/**
 * A page of the repository as one HTML page with a list of its chapters. Headings get the anchors that GitHub gives them.
 * Links into the repository lead to where their files are served.
 * @param page our own text: HTML in it is let through.
 * @throws when it has no title, or a link to a file that is not served.
 */
function documentationPage({ file, text }: Pick<ServedFile, 'file' | 'text'>): string {
  const parser = new MarkdownIt({ html: true });
  parser.renderer.rules.heading_open = (tokens, at) => {
    const { tag = 'h2' } = tokens[at] ?? {};
    return `<${tag} id="${anchorOf(tokens[at + 1]?.content ?? '')}">`;
  };
  parser.renderer.rules.link_open = (tokens, at, options, _env, renderer) => {
    const link = tokens[at];
    link?.attrSet('href', servedTarget(file, String(link.attrGet('href'))));
    return renderer.renderToken(tokens, at, options);
  };
  const [, title] = /^# (.+)$/m.exec(text) ?? [];
  if (title === undefined) throw new Error(`${file} has no title`);
  const escapeHtml = (plain: string) => parser.utils.escapeHtml(plain);
  const chapters = [...text.matchAll(/^## (.+)$/gm)].map(
    ([, chapter = '']) => `<a href="#${anchorOf(chapter)}">${escapeHtml(chapter)}</a>`,
  );
  return `<!doctype html>
<html lang="en-GB">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} – Partner Finance Quote Service</title>
<style>${STYLE}</style>
</head>
<body>
<nav aria-label="Chapters"><a href="/docs/guide">Partner guide</a>
<a href="/docs/">API reference</a>
${chapters.join('\n')}</nav>
<main>
${parser.render(text)}</main>
</body>
</html>
`;
}

function anchorOf(title: string): string {
  return title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

/** Served by a route of its own, and linked from the pages. */
const OPENAPI = ['contracts/openapi.json', '/openapi.json'] as const;

/**
 * Where a link of a page leads on the public listener. Links to other sites and to headings stay as they are.
 * @throws when it leads to a file that is not served.
 */
function servedTarget(file: string, target: string): string {
  if (/^([a-z]+:|#)/.test(target)) return target;
  const [path = '', anchor] = target.split('#');
  const linked = posix.join(posix.dirname(file), path);
  const served = new Map([OPENAPI, ...Object.entries(PAGES), ...sourceFiles()]).get(linked);
  if (served === undefined) throw new Error(`${file} links to ${linked}, which is not served`);
  return anchor === undefined ? served : `${served}#${anchor}`;
}

/** Renders the pages that partners are served; `--check` writes nothing, and fails when one would change. */
const root = join(__dirname, '../..');
for (const [file, path] of Object.entries(PAGES)) {
  const page = { file, text: readFileSync(join(root, file), 'utf8') };
  put(renderedFile(path, 'html'), documentationPage(page), file);
  put(renderedFile(path, 'md'), servedMarkdown(page), file);
}
