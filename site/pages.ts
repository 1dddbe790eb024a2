/**
 * The pages of the documentation site, as Markdown: the chapters of the guide, the client, the verifiers, what of the change log concerns
 * partners. Links between files of the repository become links between what is served.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';

export const ROOT = join(__dirname, '..');
const GUIDE = 'docs/partner-guide.md';
const VERIFIERS = 'examples/verify-webhook';

/** Where each page of the repository is served below `/docs/`; with `.md` behind it as plain Markdown. */
const SERVED: Readonly<Record<string, string>> = {
  [GUIDE]: '/guide',
  'clients/typescript/README.md': '/typescript-client',
  [`${VERIFIERS}/README.md`]: '/verify-webhook',
  'docs/changelog.md': '/changelog',
};

/** Other files in the folders of the verifiers are left there by compilers and interpreters. */
export const SOURCES = ['mjs', 'py', 'php', 'java', 'go', 'mod'];

/** The same for the source of the verifiers, which is served as it is. */
const VERIFIER_FILES: Readonly<Record<string, string>> = Object.fromEntries(
  readdirSync(join(ROOT, VERIFIERS), { recursive: true, encoding: 'utf8' })
    .filter((name) => SOURCES.includes(posix.extname(name).slice(1)))
    .map((name) => [`${VERIFIERS}/${name}`, `/verify-webhook/${name}`]),
);
/** Pictures of the pages, which VitePress copies. */
export const PICTURES: Readonly<Record<string, string>> = {
  'docs/pictures/journey.svg': '/journey.svg',
  'docs/pictures/summaries.png': '/summaries.png',
};
const TARGETS = { ...SERVED, ...VERIFIER_FILES, ...PICTURES };
const DOCUMENT = 'contracts/openapi.json';

export interface Page {
  readonly path: string;
  readonly title: string;
  readonly text: string;
}

/** The anchor that GitHub gives a heading. */
export const anchorOf = (heading: string) =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');

/** @returns the chapters of the guide, each a page, and the other pages, for the site; with the links of the site. */
export function sitePages(): { readonly guide: readonly Page[]; readonly others: readonly Page[] } {
  const [introduction = '', ...chapters] = textOf(GUIDE).split(/^(?=## )/m);
  const guide = chapters.map((text, at) => {
    const [, title = '', body = ''] = /^## (.+)\n([\s\S]*)$/.exec(text) ?? [];
    const opening = at === 0 ? introduction.replace(/^# .+/, '') : '';
    const path = at === 0 ? '/guide' : `/guide/${anchorOf(title)}`;
    return { path, title, text: `# ${title}\n${opening}${body.replaceAll(/^#(?=##)/gm, '')}` };
  });
  /** The page of each heading of the guide. */
  const pageWith = new Map(
    guide.flatMap(({ path, text }) =>
      [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => [anchorOf(heading), path] as const),
    ),
  );
  const linkTo = (file: string, anchor: string) => {
    if (file === DOCUMENT) return '/reference';
    const path = file === GUIDE && anchor !== '' ? pageWith.get(anchor) : TARGETS[file];
    if (path === undefined) throw new Error(`the guide has no heading ${anchor}`);
    return anchor === '' ? path : `${path}#${anchor}`;
  };
  const page = (file: string, path: string, text: string) => {
    const [, title = path] = /^# (.+)$/m.exec(text) ?? [];
    return { path, title, text: relinked(file, text, linkTo) };
  };
  return {
    guide: guide.map(({ path, text }) => page(GUIDE, path, text)),
    others: Object.entries(SERVED)
      .slice(1)
      .map(([file, path]) => page(file, path, textOf(file))),
  };
}

/** @returns what is served as it is, by its path below `/docs`: each page as Markdown, and the source of the verifiers. */
export function plainFiles(): (readonly [path: string, text: string])[] {
  const linkTo = (file: string, anchor: string) => {
    if (file === DOCUMENT) return '/openapi.json';
    return `/docs${TARGETS[file]}${file in SERVED ? '.md' : ''}${anchor === '' ? '' : `#${anchor}`}`;
  };
  return [
    ...Object.entries(SERVED).map(
      ([file, path]) => [`${path}.md`, relinked(file, textOf(file), linkTo)] as const,
    ),
    ...Object.entries(VERIFIER_FILES).map(([file, path]) => [path, textOf(file)] as const),
  ];
}

/** A page of the repository; of the change log what concerns partners. */
function textOf(file: string): string {
  const text = readFileSync(join(ROOT, file), 'utf8');
  return file === 'docs/changelog.md'
    ? text.replaceAll(/^### For (?!partners)[\s\S]*?(?=^##|(?![\s\S]))/gm, '')
    : text;
}

/**
 * A page whose links lead to what is served. Code stays as it is: what looks like a link there is none.
 * @throws when it links to a file that is not served.
 */
function relinked(file: string, text: string, linkTo: (file: string, anchor: string) => string): string {
  const target = (given: string): string => {
    if (/^[a-z]+:/.test(given)) return given;
    const [path = '', anchor = ''] = given.split('#');
    const linked = path === '' ? file : posix.join(posix.dirname(file), path);
    if (linked !== DOCUMENT && !(linked in TARGETS))
      throw new Error(`${file} links to ${linked}, which is not served`);
    return linkTo(linked, anchor);
  };
  return text
    .split(/^(```[\s\S]*?^```$)/m)
    .map((part) =>
      part.startsWith('```')
        ? part
        : part.replaceAll(/\]\(([^)\s]+)\)/g, (_link, given: string) => `](${target(given)})`),
    )
    .join('');
}
