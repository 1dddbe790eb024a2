import MarkdownIt from 'markdown-it';
import type { ServedFile } from '../../api/routes/get-documentation';
import { servedTarget } from './served-target';

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
export function documentationPage({ file, text }: Pick<ServedFile, 'file' | 'text'>): string {
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
