import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { cp, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { signal, waitForEnd } from '../../dev/processes';
import { freePort } from '../support/free-port';
import { provideSmallDisk } from '../support/small-disk';
import { startNode, type ProjectProcess } from '../support/project-process';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';
import { startWatchdog } from '../support/watchdog';

const project = join(__dirname, '..', '..');
let root: string;
let dismissWatchdog: () => void;

/** Stands in for npm: makes node_modules, counts its runs, fails when told to. */
const FAKE_NPM = `
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
  for (const name of ['bootstrap.cjs', 'install.cjs', 'install-lock.cjs', 'look-ahead.cjs', 'ops-bundle.cjs'])
    await cp(join(project, 'bin', name), join(root, 'bin', name));
  await writeFile(join(root, 'bin', 'start.ts'), START);
  await writeFile(
    join(root, 'bin', 'ops.ts'),
    `console.log(JSON.stringify(process.argv.slice(2))); process.exit(7);`,
  );
  await writeFile(join(root, 'package.json'), '{}');
  await writeFile(join(root, 'package-lock.json'), '{ "packages": { "": {} } }');
  await writeFile(join(root, 'npm-cli.js'), FAKE_NPM);
});

afterEach(async () => {
  await removeDirectory(root);
  dismissWatchdog();
});

function bootstrap(...args: string[]): ProjectProcess {
  return startNode([join(root, 'bin', 'bootstrap.cjs'), ...args], {
    cwd: root,
    environment: {
      npm_execpath: join(root, 'npm-cli.js'),
      // No look at the internet for one.
      TEMPORAL_ADDRESS: '127.0.0.1:1',
      REAL_TSX: join(project, 'node_modules', 'tsx'),
    },
  });
}

test('installs once for two at the same time, keeps standard output for the command, ends with its code', async () => {
  const both = [bootstrap('ops', 'list', '--json'), bootstrap('ops', 'a b')];
  expect(await Promise.all(both.map(({ ended }) => ended))).toEqual([7, 7]);
  expect(both.map((one) => one.stdout())).toEqual(['["list","--json"]\n', '["a b"]\n']);
  const said = both.map((one) => one.output()).join('');
  expect(said).toMatch(/Installing dependencies.*Installed in/s);
  expect(said).toMatch(/Another process is installing/);

  const again = bootstrap('ops');
  await again.ended;
  expect(again.output()).toBe('[]\n');
  expect(await readFile(join(root, 'npm-runs'), 'utf8')).toEqual(
    expect.stringMatching(/^ci --include=dev --include=optional .*\n$/),
  );
});

test('ops is compiled once, again when a file of it has changed, and by tsx when that fails', async () => {
  const [main, part] = [join(root, 'bin', 'ops.ts'), join(root, 'bin', 'part.ts')];
  const said = async () => {
    const call = bootstrap('ops');
    const code = await call.ended;
    return [code, call.stdout()];
  };
  await writeFile(main, `import { part } from './part'; console.log(part as string, process.cwd());`);
  await writeFile(part, `export const part: string = 'one';`);
  expect(await said()).toEqual([0, `one ${root}\n`]);
  const bundle = join(root, 'node_modules', '.cache', 'ops', 'ops.cjs');
  const compiled = await stat(bundle);
  expect(await said()).toEqual([0, `one ${root}\n`]);
  expect((await stat(bundle)).ino).toBe(compiled.ino);
  await writeFile(part, `export const part: string = 'another';`);
  expect(await said()).toEqual([0, `another ${root}\n`]);
  await writeFile(part, `export const part: string = `);
  const broken = bootstrap('ops');
  expect(await broken.ended).toBe(1);
  expect(broken.output()).toContain('part.ts');
  // A cache that cannot be written costs time, nothing else.
  await writeFile(part, `export const part: string = 'third';`);
  await rm(join(root, 'node_modules', '.cache'), { recursive: true });
  await writeFile(join(root, 'node_modules', '.cache'), '');
  expect(await said()).toEqual([0, `third ${root}\n`]);
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

test('installs again when the lock file changes, and takes over the lock of a killed installation', async () => {
  await bootstrap('install').ended;
  await writeFile(join(root, 'package-lock.json'), '{ "packages": { "": { "version": "2" } } }');
  const lock = join(root, '.cache', 'install.lock');
  await mkdir(lock, { recursive: true });
  await writeFile(join(lock, 'holders.json'), JSON.stringify([{ pid: process.pid, since: 'the stone age' }]));
  const second = bootstrap('install');
  expect(await second.ended).toBe(0);
  expect((await readFile(join(root, 'npm-runs'), 'utf8')).split('\n')).toHaveLength(3);
});

test('ends with the code of a failed npm ci, starts nothing, and tries again next time', async () => {
  await writeFile(join(root, 'npm-shall-fail'), '');
  for (let attempt = 0; attempt < 2; attempt += 1) {
    const failing = bootstrap('ops');
    expect(await failing.ended).toBe(17);
    expect(failing.output()).toMatch(/npm ci failed with code 17/);
    expect(failing.stdout()).toBe('');
  }
});

test.each([
  ['npm error code ENOSPC', /The disk is full: make room/],
  ['npm error code ECONNREFUSED', /does not reach its registry: look at `npm config/],
  ['npm error code EACCES', /may not write the project or the cache of npm/],
])('after %s it says what to do', async (complaint, advice) => {
  await writeFile(join(root, 'npm-shall-fail'), complaint);
  const failing = bootstrap('ops');
  await failing.ended;
  expect(failing.output()).toContain(complaint);
  expect(failing.output()).toMatch(advice);
});

test('counts the packages in place, of those for this machine, on one line of a terminal', async () => {
  const packages = {
    '': {},
    'node_modules/tsx': {},
    'node_modules/never': {},
    'node_modules/other': { os: ['plan9'] },
    'clients/typescript': {},
  };
  await writeFile(join(root, 'package-lock.json'), JSON.stringify({ packages }));
  await mkdir(join(root, 'node_modules', 'tsx'), { recursive: true });
  await writeFile(join(root, 'node_modules', 'tsx', 'package.json'), '{}');
  const running = startNode(
    [
      '-e',
      `require('./bin/install.cjs').ensureInstalled({ root: ${JSON.stringify(root)}, redraws: true, npmPath: process.env.npm_execpath, say: console.log })`,
    ],
    { cwd: root, environment: { npm_execpath: join(root, 'npm-cli.js'), NPM_TAKES_MS: '1200' } },
  );
  expect(await running.ended).toBe(0);
  expect(running.output()).toMatch(/(\r\u001B\[K {2}1 of 2 packages, \d s){2}\r\u001B\[KInstalled in/);
});

(process.getuid?.() === 0 ? test : test.skip)(
  'installs nothing on a disk that is too small for it',
  async () => {
    const disk = await provideSmallDisk();
    if (disk.parent === undefined) return disk.close();
    try {
      await cp(root, join(disk.parent, 'project'), { recursive: true });
      const refused = startNode([join(disk.parent, 'project', 'bin', 'bootstrap.cjs'), 'ops'], { cwd: root });
      expect(await refused.ended).toBe(1);
      expect(refused.output()).toMatch(
        /^\d+ MB are free on the disk of .*, and the dependencies take 650 MB\. Make room, .*\n$/,
      );
    } finally {
      await disk.close();
    }
  },
);

/** What the look ahead says on a machine with so much. */
async function lookAhead(machine: { go?: string; site: string; environment?: Record<string, string> }) {
  const folder = join(root, 'machine');
  await mkdir(folder, { recursive: true });
  const goNames = machine.go === undefined ? [] : ['go'];
  if (machine.go !== undefined) await writeFile(join(folder, 'go'), machine.go, { mode: 0o755 });
  const options = JSON.stringify({ site: machine.site, goNames });
  const looking = startNode(
    [
      '-e',
      `require('./bin/look-ahead.cjs').lookAhead({ ...${options}, env: process.env, say: console.log })`,
    ],
    { cwd: root, environment: { HOME: folder, TOOLS_DIR: folder, PATH: folder, ...machine.environment } },
  );
  expect(await looking.ended).toBe(0);
  return looking.output();
}

test('says before an installation that there will be no Temporal, and what would help', async () => {
  const nowhere = { site: `http://127.0.0.1:${await freePort()}` };
  expect(await lookAhead(nowhere)).toMatch(
    /^This machine lacks Temporal: .*no Go to build .*\n.*webhooks will wait\.\n.*install Go/,
  );
  expect(await lookAhead({ ...nowhere, go: '#!/bin/sh\nexit 1\n' })).toMatch(
    /Go gets no modules.*give Go a module proxy/s,
  );
  expect(await lookAhead({ ...nowhere, go: '#!/bin/sh\nexit 0\n' })).toMatch(
    /will build it, this once, in 3 to 5 minutes/,
  );
  expect(await lookAhead({ ...nowhere, environment: { TEMPORAL_ADDRESS: 'elsewhere:7233' } })).toBe('');
  // Whether the proxy lets anybody out only the download finds out.
  expect(await lookAhead({ ...nowhere, environment: { HTTPS_PROXY: 'http://127.0.0.1:1' } })).toBe('');
  await mkdir(join(root, 'machine', 'temporal-cli-1.5.1-linux-x64'));
  expect(await lookAhead(nowhere)).toBe('');
});

test.each([
  [200, /^$/],
  [403, /^This machine lacks Temporal/],
])('a site that answers %d', async (status, said) => {
  const site = createServer((_request, response) => response.writeHead(status).end()).listen(0, '127.0.0.1');
  await once(site, 'listening');
  const { port } = site.address() as AddressInfo;
  expect(await lookAhead({ site: `http://127.0.0.1:${port}` })).toMatch(said);
  site.close();
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
  expect(refused.output()).toMatch(/usage: .*start\|ops\|demo\|test/);
});
