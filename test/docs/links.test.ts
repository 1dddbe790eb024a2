import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { anchorsOf, groupsOf, projectFiles, read, root } from './tree';

/** Every link from one kept page to another leads somewhere: the file exists, and the heading in it. */
const pages = projectFiles.filter((file) => file.endsWith('.md'));

/** Without code: what looks like a link in there is none. */
const prose = (file: string) =>
  read(file)
    .replaceAll(/^(```+)[\s\S]*?^\1/gm, '')
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()]/g, ''));

const broken = (file: string) =>
  groupsOf(prose(file), /\]\(([^)\s]+)\)/g)
    .filter((target) => !/^[a-z]+:|^\//.test(target))
    .filter((target) => {
      const [path = '', anchor] = target.split('#');
      const page = path === '' ? file : relative(root, resolve(root, dirname(file), path));
      if (!existsSync(join(root, page))) return true;
      return anchor !== undefined && page.endsWith('.md') && !anchorsOf(prose(page)).includes(anchor);
    });

describe('the documentation', () => {
  test.each(pages)('%s links to pages and headings that exist', (file) => {
    expect(broken(file)).toEqual([]);
  });

  const code = projectFiles.filter(
    (file) =>
      /(\.(ts|cjs|mjs|sql|sh|py|ya?ml|cfg|conf|env|service)|Dockerfile|^\.ci\/run)$/.test(file) &&
      !/^test\/(histories|vectors)/.test(file),
  );
  const COMMENT = /(?:^\s*(?:\/?\*+|#|--)|(?:^|\s)\/\/)\s(?!@param)(.*)$/gm;
  const FILE = /(?<![\w@/.$}*<:-])((?:[\w.-]+\/)*[\w-][\w.-]*\.(?:ts|sql|mjs|cjs|sh|py|md|ya?ml|cfg))\b/g;

  test('comments in the code name files that exist', () => {
    // A path, or the last part of one. `/docs/guide.md` is served and `.data/` is made; neither is a file of the project.
    const isThere = (file: string, name: string) =>
      existsSync(resolve(root, dirname(file), name)) ||
      projectFiles.some((path) => `/${path}`.endsWith(`/${name}`));
    const named = code.flatMap((file) =>
      groupsOf(read(file), COMMENT)
        .flatMap((text) => groupsOf(text, FILE))
        .map((name) => [file, name] as const),
    );
    expect(named.length).toBeGreaterThan(100);
    expect(named.filter(([file, name]) => !isThere(file, name))).toEqual([]);
  });
});
