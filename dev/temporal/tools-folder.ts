import { access, constants, lstat, mkdir } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { StackFailure } from '../failure';

const NAME = 'partner-finance-quote-service';

export interface ToolsFolder {
  readonly path: string;
  /** Whether programs may keep files of their own in the home folder. */
  readonly homeWritable: boolean;
}

/**
 * Where programs are kept that were built or downloaded once: in `XDG_CACHE_HOME`, else in the user's cache folder, else, where the
 * home folder cannot be written, in a folder of this user's under the temporary one.
 * @param wanted another folder.
 * @throws StackFailure when there is none.
 */
export async function openToolsFolder(wanted?: string): Promise<ToolsFolder> {
  // oxlint-disable-next-line node/no-process-env -- the user's, as the home folder is (XDG base directory specification)
  const cacheHome = process.env['XDG_CACHE_HOME'] ?? '';
  const home = homeFolder();
  const homeWritable = home !== undefined && (await isWritable(home));
  if (wanted !== undefined || cacheHome !== '') {
    const path = resolve(wanted ?? join(cacheHome, NAME));
    if (await makeFolder(path)) return { path, homeWritable };
    throw new StackFailure(`${path} cannot be written. Set XDG_CACHE_HOME to another folder.`);
  }
  if (homeWritable) {
    const path = join(home, '.cache', NAME);
    if (await makeFolder(path)) return { path, homeWritable };
  }
  const user = process.getuid?.() ?? 0;
  const path = join(tmpdir(), `${NAME}-${user}`);
  if ((await makeFolder(path)) && (await belongsTo(path, user))) return { path, homeWritable };
  throw new StackFailure(
    `Neither the home folder nor ${path} can be used. Set XDG_CACHE_HOME to a folder of yours.`,
  );
}

/** Undefined for an account that has none. */
function homeFolder(): string | undefined {
  try {
    return homedir();
  } catch {
    return undefined;
  }
}

async function makeFolder(path: string): Promise<boolean> {
  await mkdir(path, { recursive: true, mode: 0o700 }).catch(() => undefined);
  return isWritable(path);
}

async function isWritable(path: string): Promise<boolean> {
  return access(path, constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** Under /tmp anybody may have made it first, and programs are run from it. */
async function belongsTo(path: string, user: number): Promise<boolean> {
  const found = await lstat(path);
  return found.isDirectory() && found.uid === user && (found.mode & 0o022) === 0;
}
