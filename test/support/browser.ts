import { chromium, type Browser } from 'playwright-core';
import { onPath } from './needs';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome'];

/** A headless Chromium of the machine's own. @throws when there is none on the PATH. */
export function launchBrowser(): Promise<Browser> {
  const executablePath = onPath(...NAMES);
  if (executablePath === undefined) throw new Error(`none of ${NAMES.join(', ')} is on the PATH`);
  // Root, as in a container, has no sandbox to offer.
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
