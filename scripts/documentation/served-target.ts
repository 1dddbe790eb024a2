import { posix } from 'node:path';
import { PAGES, sourceFiles } from '../../api/routes/get-documentation';

/** Served by a route of its own, and linked from the pages. */
const OPENAPI = ['contracts/openapi.json', '/openapi.json'] as const;

/**
 * Where a link of a page leads on the public listener. Links to other sites and to headings stay as they are.
 * @throws when it leads to a file that is not served.
 */
export function servedTarget(file: string, target: string): string {
  if (/^([a-z]+:|#)/.test(target)) return target;
  const [path = '', anchor] = target.split('#');
  const linked = posix.join(posix.dirname(file), path);
  const served = new Map([OPENAPI, ...Object.entries(PAGES), ...sourceFiles()]).get(linked);
  if (served === undefined) throw new Error(`${file} links to ${linked}, which is not served`);
  return anchor === undefined ? served : `${served}#${anchor}`;
}
