import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { chromium, type Browser } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** A headless Chromium of the machine's own. @throws when there is none on the PATH. */
export function launchBrowser(): Promise<Browser> {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const executablePath = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(runs);
  if (executablePath === undefined) throw new Error(`none of ${NAMES.join(', ')} is on the PATH`);
  // Root, as in a container, has no sandbox to offer.
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

function runs(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
