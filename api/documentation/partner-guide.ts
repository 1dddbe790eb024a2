import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The committed guide, read once per process. @throws when the installation lacks docs/partner-guide.md. */
export function readPartnerGuide(): string {
  return readFileSync(join(__dirname, '../../docs/partner-guide.md'), 'utf8');
}
