import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { projectFiles, root } from './tree';

/** Every link from one kept page to another leads somewhere: the file exists, and the heading in it. */
const pages = projectFiles.filter((file) => file.endsWith('.md'));

/** Without code: what looks like a link in there is none. */
const prose = (file: string) =>
  readFileSync(join(root, file), 'utf8')
    .replaceAll(/^(```+)[\s\S]*?^\1/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ''));

/** As GitHub makes them: lower case, punctuation gone, spaces become hyphens. */
const anchorsOf = (file: string) =>
  [...prose(file).matchAll(/^#{1,6} +(.+)$/gm)].map(([, heading = '']) =>
    heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\- _]/gu, '')
      .replaceAll(' ', '-'),
  );

const broken = (file: string) =>
  [...prose(file).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:|^\//.test(target))
    .filter((target) => {
      const [path = '', anchor] = target.split('#');
      const page = path === '' ? file : relative(root, resolve(root, dirname(file), path));
      if (!existsSync(join(root, page))) return true;
      return anchor !== undefined && page.endsWith('.md') && !anchorsOf(page).includes(anchor);
    });

describe('the documentation', () => {
  test.each(pages)('%s links to pages and headings that exist', (file) => {
    expect(broken(file)).toEqual([]);
  });

  test('comments in the code name pages that exist', () => {
    // `/docs/guide.md` is a path that is served, and no file.
    const named = projectFiles
      .filter((file) => /\.(ts|cjs|mjs)$/.test(file))
      .flatMap((file) =>
        [...readFileSync(join(root, file), 'utf8').matchAll(/(?<!(?<!\.)\/)\bdocs\/[\w/-]+\.md\b/g)].map(
          ([page]) => [file, page] as const,
        ),
      );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter(([, page]) => !existsSync(join(root, page)))).toEqual([]);
  });
});
