import { markdownPath, PAGES, type ServedFile } from '../../api/routes/get-documentation';
import { servedTarget } from './served-target';

const pages = new Set(Object.values(PAGES));

/**
 * A page of the repository as Markdown whose links lead to what is served, to other pages in the same form.
 * @throws when it links to a file that is not served.
 */
export function servedMarkdown({ file, text }: Pick<ServedFile, 'file' | 'text'>): string {
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
