import { findGenerator, type Generator } from './generators';

/** A program (test/support/needs.ts): `obtain-generator.ts <generator>`. Prints why it cannot be had. */
const [wanted = ''] = process.argv.slice(2);
findGenerator(wanted as Generator, (text) => process.stderr.write(`Generators of clients: ${text}\n`)).catch(
  (error: Error) => {
    process.stdout.write(error.message);
    process.exitCode = 1;
  },
);
