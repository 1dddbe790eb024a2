import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findTemporal } from '../../dev/temporal';
import { startNode } from '../support/project-process';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

/** Stands for the CLI: what matters here is that it gets into its place and can be run. */
const PROGRAM = "#!/bin/sh\necho 'temporal version 1.10.2 (Server 1.32.2, UI 2.54.1)'\n";

let directory: string;
let site: Server;
let siteUrl: string;
let archive: Buffer;
let asked: string[];
/** The archive is held back until then. */
let released: Promise<void>;
let answer: 'archive' | 'nothing there';

beforeAll(async () => {
  directory = await temporaryDirectory('tools');
  await writeFile(join(directory, 'temporal'), PROGRAM);
  await chmod(join(directory, 'temporal'), 0o755);
  await promisify(execFile)('tar', ['-czf', 'archive.tar.gz', 'temporal'], { cwd: directory });
  archive = await readFile(join(directory, 'archive.tar.gz'));
  site = createServer((request, response) => {
    asked.push(request.url ?? '');
    if (answer === 'archive') {
      response.flushHeaders();
      void released.then(() => response.end(archive));
    } else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
});

beforeEach(() => {
  asked = [];
  answer = 'archive';
  released = Promise.resolve();
});

afterAll(async () => {
  site.closeAllConnections();
  await new Promise((resolve) => site.close(resolve));
  await removeDirectory(directory);
});

function search(toolsDir: string, path: string, ignorePath = true) {
  const options = JSON.stringify({ toolsDir, downloadSite: siteUrl, ignorePath });
  const script = `require('./dev/temporal/executable.ts').findTemporal({ ...${options}, onProgress: console.log })
    .then((file) => console.log('found ' + file), (error) => console.log(error.message))`;
  return startNode(['--import', 'tsx', '-e', script], {
    cwd: join(__dirname, '..', '..'),
    environment: { PATH: path },
  });
}

const machine = `${process.platform}-${process.arch}`;

test('downloads the newest version, once for two processes, and keeps it under its number', async () => {
  const toolsDir = join(directory, 'kept here');
  const path = process.env['PATH'] ?? '';
  let release = () => {};
  released = new Promise((resolve) => (release = resolve));
  const searches = [search(toolsDir, path), search(toolsDir, path)];
  await Promise.race(searches.map((one) => one.waitFor(/waiting for process \d+/, 60_000)));
  release();
  await Promise.all(searches.map(({ ended }) => ended));
  const folder = `temporal-cli-1.10.2-${machine}`;
  for (const found of searches)
    expect(found.stdout().trim().split('\n').at(-1)).toBe(`found ${join(toolsDir, folder, 'temporal')}`);
  expect(asked).toEqual([
    `/cli/archive/latest?platform=${process.platform}&arch=${process.arch === 'x64' ? 'amd64' : process.arch}`,
  ]);
  expect(searches.map((found) => found.stdout()).join('')).toMatch(/waiting for process \d+/);
  // No draft, no lock.
  expect(await readdir(toolsDir)).toEqual([folder]);

  await findTemporal({ toolsDir, downloadSite: siteUrl, ignorePath: true });
  expect(asked).toHaveLength(1);
});

test('takes the newest of those that are kept, and leaves those of other machines alone', async () => {
  const toolsDir = join(directory, 'several');
  for (const folder of [`1.5.1-${machine}`, `1.10.0-${machine}`, `1.9.3-${machine}`, '1.11.0-plan9-mips']) {
    const place = join(toolsDir, `temporal-cli-${folder}`);
    await mkdir(place, { recursive: true });
    await copyFile(join(directory, 'temporal'), join(place, 'temporal'));
  }
  const found = await findTemporal({ toolsDir, downloadSite: siteUrl, ignorePath: true });
  expect(found).toBe(join(toolsDir, `temporal-cli-1.10.0-${machine}`, 'temporal'));
  expect(asked).toEqual([]);
});

test('a toolchain that the user has chosen stays', async () => {
  answer = 'nothing there';
  const bin = join(directory, 'chosen');
  await mkdir(bin);
  await writeFile(
    join(bin, 'go'),
    '#!/bin/sh\n[ "$1" != env ] || echo "GOTOOLCHAIN=local"\n[ "$1" = install ] || exit 0\necho "toolchain: ${GOTOOLCHAIN-of the user}" >&2; exit 1\n',
  );
  await chmod(join(bin, 'go'), 0o755);
  const failed = search(join(directory, 'never filled'), `${bin}:${process.env['PATH']}`);
  await failed.ended;
  expect(failed.stdout()).toMatch(/toolchain: of the user/);
});

test('prefers the one on the PATH', async () => {
  const toolsDir = join(directory, 'never used');
  const found = search(toolsDir, `${directory}:${process.env['PATH']}`, false);
  await found.ended;
  expect(found.stdout()).toBe(`found ${join(directory, 'temporal')}\n`);
  expect(asked).toEqual([]);
});

test('takes over from a killed process, and names every way that failed', async () => {
  answer = 'nothing there';
  const toolsDir = join(directory, 'after a kill');
  await mkdir(join(toolsDir, 'new-left'), { recursive: true });
  const lock = `temporal-cli-${machine}.lock`;
  await writeFile(join(toolsDir, lock), JSON.stringify({ pid: process.pid, startedAt: 'long ago' }));
  // A Go that cannot build.
  const bin = join(directory, 'bin');
  await mkdir(bin);
  await writeFile(
    join(bin, 'go'),
    '#!/bin/sh\n[ "$1" = install ] || exit 0\necho no network here, toolchain: $GOTOOLCHAIN >&2; exit 1\n',
  );
  await chmod(join(bin, 'go'), 0o755);
  const failed = search(toolsDir, `${bin}:${process.env['PATH']}`);
  await failed.ended;
  expect(failed.stdout()).toMatch(
    /building Temporal .* with Go.*cannot be had here:.*PATH: .*download: .*404.*go install: .*no network here, toolchain: auto.*TEMPORAL_ADDRESS/s,
  );
  expect(await readdir(toolsDir)).toEqual([]);
});

test('names the setting when its folder cannot be used', async () => {
  const toolsDir = join(directory, 'temporal', 'a file is no folder');
  await expect(findTemporal({ toolsDir, ignorePath: true })).rejects.toThrow(/XDG_CACHE_HOME/);
});
