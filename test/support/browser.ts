import { chromium, type Browser } from 'playwright-core';
import { CHROMIUM, onPath } from './needs';

/** A headless Chromium of the machine's own, in a file that needs it. */
export function launchBrowser(): Promise<Browser> {
  const executablePath = onPath(...CHROMIUM) ?? '';
  // Root, as in a container, has no sandbox to offer.
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}
