import { findTemporal } from '../../dev/temporal';

/** A program (test/support/needs.ts). Prints why the server cannot be had. */
findTemporal({
  onProgress: (text) => process.stderr.write(`Temporal for tests: ${text}\n`),
}).catch((error: Error) => {
  process.stdout.write(error.message);
  process.exitCode = 1;
});
