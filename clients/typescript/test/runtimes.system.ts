import { execFile } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { onPath } from '../../../test/support/needs';
import { runDirectory } from '../../../testbed/temporary-directory';
import { installPackage } from './built-package';

/** The built package does the same everywhere. What it does is in smoke.mjs, which needs no network. */
const folder = runDirectory('runtimes');
beforeAll(async () => {
  await installPackage(folder);
  copyFileSync(join(__dirname, 'smoke.mjs'), join(folder, 'smoke.mjs'));
  writeFileSync(
    join(folder, 'main.mjs'),
    `import * as library from './node_modules/partner-finance-client/dist/index.js';
    import { EXPECTED, smoke } from './smoke.mjs';
    export const said = [await smoke(library), EXPECTED];`,
  );
  writeFileSync(
    join(folder, 'run.mjs'),
    `import { said } from './main.mjs'; console.log(JSON.stringify(said));`,
  );
  writeFileSync(
    join(folder, 'run.cjs'),
    `const library = require('partner-finance-client');
    import('./smoke.mjs').then(async ({ EXPECTED, smoke }) => console.log(JSON.stringify([await smoke(library), EXPECTED])));`,
  );
  // What an edge runtime has: the language, and the names of the web's minimum common API that the package may use.
  writeFileSync(
    join(folder, 'edge.mjs'),
    `import { readFileSync } from 'node:fs';
    import { dirname, join } from 'node:path';
    import vm from 'node:vm';
    // Vercel's has none.
    delete globalThis.AbortSignal.any;
    const names = 'fetch Request Response Headers URL URLSearchParams AbortSignal AbortController TextEncoder TextDecoder ' +
      'crypto atob btoa performance setTimeout clearTimeout';
    const context = vm.createContext(Object.fromEntries(names.split(' ').map((name) => [name, globalThis[name]])));
    const modules = new Map();
    const load = (file) => {
      if (!modules.has(file))
        modules.set(file, new vm.SourceTextModule(readFileSync(file, 'utf8'), { context, identifier: file }));
      return modules.get(file);
    };
    const main = load(join(import.meta.dirname, 'main.mjs'));
    await main.link((specifier, from) => load(join(dirname(from.identifier), specifier)));
    await main.evaluate();
    console.log(JSON.stringify(main.namespace.said));`,
  );
});

const NO_REQUIRE = '--no-experimental-require-module';
const NO_REQUIRE_OF_MODULES = process.allowedNodeEnvironmentFlags.has('--experimental-require-module')
  ? [NO_REQUIRE]
  : [];

/** Deno and Bun where they are on the PATH. */
const RUNTIMES: Readonly<Record<string, readonly string[]>> = {
  Node: [process.execPath, 'run.mjs'],
  // Node 20 and later can `require` an ES module, so this would pass without the second form but for the flag.
  'Node, from CommonJS': [process.execPath, ...NO_REQUIRE_OF_MODULES, 'run.cjs'],
  'an edge runtime': [process.execPath, '--experimental-vm-modules', 'edge.mjs'],
  ...(onPath('deno') !== undefined && { Deno: ['deno', 'run', '--no-remote', '--allow-read', 'run.mjs'] }),
  ...(onPath('bun') !== undefined && { Bun: ['bun', 'run.mjs'] }),
};

test.each(Object.keys(RUNTIMES))('%s runs it', async (name) => {
  const [program = '', ...args] = RUNTIMES[name] ?? [];
  const { stdout } = await promisify(execFile)(program, args, { cwd: folder });
  const [said, expected] = JSON.parse(stdout) as unknown[];
  expect(said).toEqual(expected);
});
