import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { delimiter, join, relative } from 'node:path';

export const CHROMIUM = ['chromium', 'chromium-browser', 'google-chrome'];

/**
 * What tests use beside Node and npm, and what this machine lacks of it: undefined, or a text that says so. Tests that need
 * it are then skipped, and named at the end of the run; with CI=true they fail. `npm run setup:test` installs all of it.
 */
const PARTS = {
  // Which are made by root alone.
  namespaces: () =>
    process.platform === 'linux' && process.getuid?.() === 0
      ? command('nsenter')
      : 'namespaces are made by root, on Linux',
  'cryptography for Python': () =>
    pythonWithCryptography() === undefined ? 'no python3 with that package' : undefined,
  Chromium: () => command(...CHROMIUM),
  curl: () => command('curl'),
  fish: () => command('fish'),
  zsh: () => command('zsh'),
  Go: () => command('go'),
  HAProxy: () => command('haproxy'),
  Java: () => command('javac'),
  etcd: () => command('etcd'),
  IPv6: () =>
    Object.values(networkInterfaces()).some((own) => own?.some(({ family }) => family === 'IPv6'))
      ? undefined
      : 'this machine has no IPv6 address',
  iproute: () => command('ip'),
  Patroni: () => command('patroni'),
  'Guzzle for PHP': () =>
    spawnSync('php', [
      '-r',
      'exit(extension_loaded("mbstring") && @include "GuzzleHttp/autoload.php" ? 0 : 1);',
    ]).status === 0
      ? undefined
      : 'no php with mbstring and Guzzle',
  Maven: () => command('mvn'),
  PHP: () => command('php'),
  Postgres: () => (installedPostgres() ? undefined : 'there is no Postgres with pg_dump'),
  Prometheus: () =>
    ['prometheus', 'promtool', 'prometheus-node-exporter', 'prometheus-blackbox-exporter']
      .map((name) => command(name))
      .find((missing) => missing !== undefined),
  Python: () => command('python3'),
  Redis: () => command('redis-server'),
  Temporal: () => obtain('temporal', TEMPORAL),
  'time-skipping Temporal': () => obtain('time-skipping', TEMPORAL),
  // Of clients (test/clients).
  'openapi-generator': () => obtain('openapi-generator', GENERATOR),
  'oapi-codegen': () => obtain('oapi-codegen', GENERATOR),
  ogen: () => obtain('ogen', GENERATOR),
  'Python generators': () => obtain('Python generators', GENERATOR),
  'npm generators': () => obtain('npm generators', GENERATOR),
} as const;
export type Part = keyof typeof PARTS;

const root = join(__dirname, '../..');
/** Programs that print why a thing cannot be had. */
const TEMPORAL = join(__dirname, 'obtain-temporal.ts');
const GENERATOR = join(__dirname, '../clients/obtain-generator.ts');
/** Of the run. Test files live in several processes. */
const VARIABLE = 'PFQS_TEST_NEEDS';
const shared = (name: string) => join(process.env[VARIABLE] ?? '', name);
const THERE = 'there';
/** The first start on a machine may have to build Temporal. */
const OBTAIN_LIMIT_MS = 1_200_000;

/** For globalSetup. */
export function rememberNeeds(folder: string): void {
  mkdirSync(folder);
  process.env[VARIABLE] = folder;
  // Where Go's installer and Debian's haproxy are: the PATH of an ordinary user may not lead there.
  process.env['PATH'] = [process.env['PATH'], '/usr/local/go/bin', '/usr/sbin'].join(delimiter);
}

/** `describe`, or `describe.skip` where a part is missing. @throws instead with CI=true. */
export function needs(...parts: Part[]): jest.Describe {
  // In a file that is skipped as a whole, `describe` skips already.
  return allThere(parts) ? describe : (describe.skip ?? describe);
}

/** At the top of a file all of whose tests need the parts: without them its hooks do not run either. @throws as `needs` */
export function fileNeeds(...parts: Part[]): void {
  if (allThere(parts) || !('skip' in test)) return;
  Object.assign(globalThis, { test: test.skip, it: it.skip, describe: describe.skip });
}

/** For globalTeardown. @returns what was not run, and the command that would let it. */
export function reportMissing(): string | undefined {
  if (!existsSync(shared('missing'))) return undefined;
  const files = new Map<string, Set<string>>();
  for (const line of readFileSync(shared('missing'), 'utf8').trim().split('\n')) {
    const [why = '', file = ''] = line.split('\t');
    files.set(why, (files.get(why) ?? new Set()).add(file));
  }
  const lines = [...files].map(([why, where]) => `  ${why}\n    ${[...where].toSorted().join(', ')}`);
  return `Not run on this machine, in whole or in part:\n${lines.join('\n')}\nTo run them as well: npm run setup:test\n`;
}

function allThere(parts: readonly Part[]): boolean {
  const missing = parts.flatMap((part) => {
    const why = PARTS[part]();
    return why === undefined ? [] : [`${part}: ${why.split(/:?\n/)[0]}`];
  });
  if (missing.length > 0 && process.env['CI'] === 'true')
    throw new Error(
      `Missing: ${missing.join(', ')}. With CI=true no test is skipped; npm run setup:test installs it.`,
    );
  const file = relative(root, expect.getState().testPath ?? '');
  for (const one of missing) appendFileSync(shared('missing'), `${one}\t${file}\n`);
  return missing.length === 0;
}

/** The first Python on the PATH may be another than the system's, which `npm run setup:test` installs the package for. */
export const pythonWithCryptography = () =>
  ['python3', '/usr/bin/python3'].find(
    (python) => spawnSync(python, ['-c', 'import cryptography']).status === 0,
  );

/** Any of these names. */
function command(...names: string[]): string | undefined {
  return onPath(...names) === undefined ? `no ${names[0]} on the PATH` : undefined;
}

/** Debian and Ubuntu have each version in a folder. */
function installedPostgres(): boolean {
  const versions = '/usr/lib/postgresql';
  return (
    existsSync(versions) &&
    readdirSync(versions).some((version) => existsSync(join(versions, version, 'bin/pg_dump')))
  );
}

/** Found, downloaded or built by the first file that needs it: its tests must know before they are defined. */
function obtain(what: string, script: string): string | undefined {
  const known = shared(what);
  const read = () => (existsSync(known) ? readFileSync(known, 'utf8') : '');
  if (read() === '') {
    const { status, stdout, error } = spawnSync(
      process.execPath,
      ['--import', 'tsx', script, what, process.env[VARIABLE] ?? ''],
      { cwd: root, stdio: ['ignore', 'pipe', 'inherit'], timeout: OBTAIN_LIMIT_MS, encoding: 'utf8' },
    );
    writeFileSync(known, status === 0 ? THERE : stdout.trim() || String(error));
  }
  return read() === THERE ? undefined : read();
}

/** The file that the first of these names has on the PATH, by the order of the names; undefined when there is none. */
export function onPath(...names: readonly string[]): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  return names
    .flatMap((name) => folders.map((folder) => join(folder, name)))
    .find((file) => existsSync(file));
}
