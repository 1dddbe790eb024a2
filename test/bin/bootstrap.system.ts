import { cp, mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signal, waitForEnd } from '../../dev/processes';
import { startNode, type ProjectProcess } from '../../testbed/project-process';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';
import { startWatchdog } from '../../testbed/watchdog';

const project = join(__dirname, '..', '..');
let root: string;
let dismissWatchdog: () => void;

/** Stands in for npm: makes node_modules, counts its runs, fails when told to. */
const FAKE_NPM = `#!${process.execPath}
const { appendFileSync, existsSync, mkdirSync, readFileSync, symlinkSync } = require('node:fs');
console.log('npm speaking');
appendFileSync('npm-runs', process.argv.slice(2).join(' ') + '\\n');
setTimeout(() => {
  if (existsSync('npm-shall-fail')) {
    console.error(readFileSync('npm-shall-fail', 'utf8'));
    process.exit(17);
  }
  mkdirSync('node_modules', { recursive: true });
  if (!existsSync('node_modules/tsx')) symlinkSync(process.env.REAL_TSX, 'node_modules/tsx');
  if (process.argv.includes('--include=dev')) mkdirSync('node_modules/jest', { recursive: true });
}, Number(process.env.NPM_TAKES_MS ?? 400));
`;

const START = `
for (const name of ['SIGINT', 'SIGTERM'] as const)
  process.on(name, () => { console.log('got ' + name); setTimeout(() => process.exit(5), 900); });
process.on('disconnect', () => { console.log('channel closed'); process.exit(0); });
setInterval(() => undefined, 1000);
console.log('up ' + process.pid);
`;

beforeEach(async () => {
  root = await temporaryDirectory('bootstrap');
  dismissWatchdog = startWatchdog(root);
  await mkdir(join(root, 'bin'));
  await cp(join(project, 'bin', 'bootstrap.cjs'), join(root, 'bin', 'bootstrap.cjs'));
  await writeFile(join(root, 'bin', 'start.ts'), START);
  const ops = 'console.log(JSON.stringify(process.argv.slice(2))); process.exit(7);';
  await writeFile(join(root, 'bin', 'ops.ts'), ops);
  await writeFile(join(root, 'package.json'), '{}');
  await writeFile(join(root, 'package-lock.json'), '{ "packages": { "": {} } }');
  await writeFile(join(root, 'npm'), FAKE_NPM, { mode: 0o755 });
});

afterEach(async () => {
  await removeDirectory(root);
  dismissWatchdog();
});

const bootstrap = (...args: string[]) => bootstrapWith({}, ...args);

function bootstrapWith(given: Record<string, string>, ...args: string[]): ProjectProcess {
  const environment = { PATH: root, REAL_TSX: join(project, 'node_modules', 'tsx'), ...given };
  return startNode([join(root, 'bin', 'bootstrap.cjs'), ...args], { cwd: root, environment });
}

test('installs once for two at the same time, keeps standard output for the command, ends with its code', async () => {
  const both = [bootstrap('ops', 'list', '--json'), bootstrap('ops', 'a b')];
  expect(await Promise.all(both.map(({ ended }) => ended))).toEqual([7, 7]);
  expect(both.map((one) => one.stdout())).toEqual(['["list","--json"]\n', '["a b"]\n']);
  const said = both.map((one) => one.output()).join('');
  expect(said).toMatch(/Installing dependencies/);
  expect(said).toMatch(/Another process is installing/);

  const again = bootstrap('ops');
  await again.ended;
  expect(again.output()).toBe('[]\n');
  const runs = await readFile(join(root, 'npm-runs'), 'utf8');
  expect(runs).toMatch(/^ci --omit=dev --workspaces=false --include=optional .*\n$/);

  // The tests need more, and what is there may be in use.
  expect(await bootstrap('install').ended).toBe(0);
  // They stay when the lock file changes, as after a pull.
  await writeFile(join(root, 'package-lock.json'), '{ "packages": { "": { "version": "2" } } }');
  expect(await bootstrap('ops').ended).toBe(7);
  const [, added, pulled] = (await readFile(join(root, 'npm-runs'), 'utf8')).trim().split('\n');
  expect(added).toMatch(/^install --no-save --include=dev --include=optional /);
  expect(pulled).toMatch(/^ci --include=dev --include=optional /);
});

test('a developer gets the tools of tests and checks with the stack, which npm ci by hand would end', async () => {
  await writeFile(join(root, 'npm-shall-fail'), '');
  expect(await bootstrap('dev').ended).toBe(17);
  expect(await readFile(join(root, 'npm-runs'), 'utf8')).toMatch(/^ci --include=dev --include=optional /);
});

test('in a production folder ops is what was built, and nothing is installed', async () => {
  await mkdir(join(root, 'dist', 'bin'), { recursive: true });
  await mkdir(join(root, 'node_modules'));
  await writeFile(join(root, 'dist', 'bin', 'ops.js'), `console.log('built', process.argv[2]);`);
  await writeFile(join(root, 'node_modules', '.package-lock.json'), '{}');
  const call = bootstrap('ops', 'partners');
  expect([await call.ended, call.output()]).toEqual([0, 'built partners\n']);
  await expect(stat(join(root, 'npm-runs'))).rejects.toThrow('ENOENT');
});

test('installs again when the lock file changes, and only once the npm of a killed installation has ended', async () => {
  const killed = bootstrapWith({ NPM_TAKES_MS: '4000' }, 'install');
  const runs = async () =>
    (await readFile(join(root, 'npm-runs'), 'utf8').catch(() => '')).split('\n').length - 1;
  while ((await runs()) === 0) await new Promise((resolve) => setTimeout(resolve, 20));
  signal(killed.pid, 'SIGKILL');
  await writeFile(join(root, 'package-lock.json'), '{ "packages": { "": { "version": "2" } } }');
  const next = bootstrap('install');
  await next.waitFor(/Another process is installing/);
  expect(await runs()).toBe(1);
  expect(await next.ended).toBe(0);
  expect(await runs()).toBe(2);
});

test('installs nothing after npm ci by hand', async () => {
  await mkdir(join(root, 'node_modules'));
  await symlink(join(project, 'node_modules', 'tsx'), join(root, 'node_modules', 'tsx'));
  await writeFile(join(root, 'node_modules', '.package-lock.json'), '{}');
  expect(await bootstrap('ops').ended).toBe(7);
  await expect(stat(join(root, 'npm-runs'))).rejects.toThrow('ENOENT');
});

test('ends with the code of a failed npm ci, starts nothing, and tries again next time', async () => {
  await writeFile(join(root, 'npm-shall-fail'), '');
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const failing = bootstrap('ops');
    expect(await failing.ended).toBe(17);
    expect(failing.output()).toMatch(/npm ci ended with 17, see above/);
    expect(failing.stdout()).toBe('');
  }
});

test('passes a doubled Ctrl-C on once, a later one again, and ends as the command ended', async () => {
  const running = bootstrap('start');
  await running.waitFor(/up \d+/);
  // The terminal and npm both send it.
  signal(running.pid, 'SIGINT');
  signal(running.pid, 'SIGINT');
  await running.waitFor(/got SIGINT/);
  await new Promise((resolve) => setTimeout(resolve, 500));
  signal(running.pid, 'SIGINT');
  expect(await running.ended).toBe(5);
  expect(running.output().match(/got SIGINT/g)).toHaveLength(2);
  // Tests run on 20 too.
  const old = Number(process.versions.node.split('.')[0]) < 22;
  expect(/is out of support .* use Node 24/.test(running.output())).toBe(old);
});

test('killed, it takes the stack with it', async () => {
  const running = bootstrap('start');
  await running.waitFor(/up \d+/);
  signal(running.pid, 'SIGKILL');
  // And with it the stack, which has the same output.
  await running.ended;
  expect(running.output()).toMatch(/channel closed/);
  expect(await waitForEnd(Number(/up (\d+)/.exec(running.output())?.[1]), 10_000)).toBe(true);
});

test('refuses a command that does not exist', async () => {
  const refused = bootstrap('stat');
  expect(await refused.ended).toBe(2);
  expect(refused.output()).toMatch(/usage: .*start\|dev\|ops\|demo\|test/);
});
