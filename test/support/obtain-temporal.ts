import { findTemporal } from '../../dev/temporal';
import { findTimeSkippingServer } from './time-skipping';

/** A program (test/support/needs.ts): `obtain-temporal.ts temporal|time-skipping <folder>`. Prints why it cannot be had. */
const [what, directory = ''] = process.argv.slice(2);
const options = {
  onProgress: (text: string) => process.stderr.write(`Temporal for tests: ${text}\n`),
};
const obtained =
  what === 'temporal' ? findTemporal(options) : findTimeSkippingServer({ ...options, directory });
obtained.catch((error: Error) => {
  process.stdout.write(error.message);
  process.exitCode = 1;
});
