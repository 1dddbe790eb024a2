/**
 * Writes into package-lock.json the optional platform packages of other systems that the registry in use did not
 * list. npm leaves them out and then refuses its own lock file in `npm ci` (npm/cli#9342). Run after changing a
 * dependency: `node scripts/complete-lock.mjs`. Parents pin these packages exactly, so the version is known.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const systems = [
  'android',
  'darwin',
  'freebsd',
  'linux',
  'win32',
  'openbsd',
  'netbsd',
  'sunos',
  'aix',
  'openharmony',
];
const processors = [
  'wasm32',
  'arm64',
  'arm',
  'x64',
  'ia32',
  'ppc64',
  's390x',
  'riscv64',
  'loong64',
  'mips64el',
];
const file = new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(file, 'utf8'));
let added = 0;
for (const [at, entry] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    if (!/^\d/.test(version)) continue;
    const candidates = [`node_modules/${name}`, `${at}/node_modules/${name}`];
    const known = candidates.some((path) => lock.packages[path]?.version === version);
    if (known) continue;
    const words = name.split(/[-/]/);
    const os = systems.find((system) => words.includes(system));
    const cpu = processors.find(
      (processor) => words.includes(processor) || (processor === 'arm' && words.includes('gnueabihf')),
    );
    const path = lock.packages[candidates[0]] === undefined ? candidates[0] : candidates[1];
    lock.packages[path] = {
      version,
      ...(cpu && { cpu: [cpu] }),
      ...(entry.dev && { dev: true }),
      optional: true,
      ...(os && { os: [os] }),
    };
    added += 1;
  }
}
lock.packages = Object.fromEntries(Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : 1)));
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`package-lock.json: ${added} platform packages added`);
