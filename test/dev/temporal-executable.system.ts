import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttp, type Server } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { findTemporal } from '../../dev/temporal';
import { freePort } from '../../dev/ports';
import { startNode } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { createTestTls } from '../../testbed/tls';

/** Stands for the CLI, of which no more is needed than that it can be run. */
const PROGRAM = "#!/bin/sh\necho 'temporal version 1.5.1 (Server 1.29.1, UI 2.42.1)'\n";
/** Known to the proxy alone. */
const NAME = 'archives.invalid';
const CREDENTIALS = 'user:password%20here';
const PATH = process.env['PATH'] ?? '';
const machine = `${process.platform}-${process.arch}`;

const directory = runDirectory('tools');
let site: Server;
let proxy: Server;
let asked: string[];
/** What the proxy was asked to connect to, with the credentials that it was given. */
let connects: string[];
/** The archive is held back until then. */
let released: Promise<void>;
let answer: 'archive' | 'another archive' | 'nothing there';
/** Of the archive. */
let checksum: string;
const portOf = (server: Server) => (server.address() as AddressInfo).port;
const siteUrl = (host: string) => `https://${host}:${portOf(site)}`;

beforeAll(async () => {
  writeProgram('', 'temporal', PROGRAM);
  execFileSync('tar', ['-czf', 'archive.tar.gz', 'temporal'], { cwd: directory });
  const { ca, cert, key } = await createTestTls([
    { type: 'dns', value: NAME },
    { type: 'dns', value: 'localhost' },
  ]);
  writeFileSync(join(directory, 'ca.pem'), ca);
  const archive = readFileSync(join(directory, 'archive.tar.gz'));
  checksum = createHash('sha256').update(archive).digest('hex');
  // It would leave a trace if it ran.
  writeProgram(
    'other',
    'temporal',
    `#!/bin/sh\ntouch ${join(directory, 'unchecked-ran')}\necho 'temporal version 1.5.1'\n`,
  );
  execFileSync('tar', ['-czf', 'other.tar.gz', '-C', 'other', 'temporal'], { cwd: directory });
  const other = readFileSync(join(directory, 'other.tar.gz'));
  site = createHttps({ cert, key }, (request, response) => {
    asked.push(request.url ?? '');
    if (answer !== 'nothing there') {
      response.flushHeaders();
      void released.then(() => response.end(answer === 'archive' ? archive : other));
    } else response.writeHead(404).end();
  });
  proxy = createHttp((_request, response) => response.writeHead(405).end());
  proxy.on('connect', (request, client, head) => {
    connects.push(`${request.url} ${request.headers['proxy-authorization']}`);
    const target = connect(portOf(site), '127.0.0.1', () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      target.write(head);
      target.pipe(client).pipe(target);
    });
    for (const end of [client, target])
      end.on('error', () => {
        client.destroy();
        target.destroy();
      });
  });
  for (const server of [site, proxy]) await once(server.listen(0, '127.0.0.1'), 'listening');
});

beforeEach(() => {
  asked = [];
  connects = [];
  answer = 'archive';
  released = Promise.resolve();
});

afterAll(async () => {
  for (const server of [site, proxy]) {
    server.closeAllConnections();
    server.close();
  }
});

/** @returns its folder */
function writeProgram(folder: string, name: string, text: string): string {
  const path = join(directory, folder);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, name), text);
  chmodSync(join(path, name), 0o755);
  return path;
}

/** A Go that cannot build, and says what it was given. */
const GO = `#!/bin/sh\n[ "$1" = install ] || exit 0\necho "no network here, toolchain: \${GOTOOLCHAIN-of the user}" >&2; exit 1\n`;

/** What `npm start` finds on such a machine, behind a Go that cannot build. */
function search(toolsDir: string, environment: Record<string, string> = {}, host = 'localhost') {
  const path = `${writeProgram('bin', 'go', GO)}:${PATH}`;
  const given = JSON.stringify({ toolsDir, downloadSite: siteUrl(host), ignorePath: true, checksum });
  const script = `require('./dev/temporal/executable.ts').findTemporal({ ...${given}, onProgress: console.log })
    .then((file) => console.log('found ' + file), (error) => console.log(error.message))`;
  return startNode(['--import', 'tsx', '-e', script], {
    cwd: join(__dirname, '..', '..'),
    environment: { PATH: path, NODE_EXTRA_CA_CERTS: join(directory, 'ca.pem'), ...environment },
  });
}

test('downloads its version, once for two processes, and keeps it under its number', async () => {
  const toolsDir = join(directory, 'kept here');
  let release = () => {};
  released = new Promise((resolve) => (release = resolve));
  const searches = [search(toolsDir), search(toolsDir)];
  await Promise.race(searches.map((one) => one.waitFor(/waiting for process \d+/, 60_000)));
  release();
  await Promise.all(searches.map(({ ended }) => ended));
  const folder = `temporal-cli-1.5.1-${machine}`;
  for (const found of searches)
    expect(found.stdout().trim().split('\n').at(-1)).toBe(`found ${join(toolsDir, folder, 'temporal')}`);
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  expect(asked).toEqual([
    `/temporalio/cli/releases/download/v1.5.1/temporal_cli_1.5.1_${process.platform}_${arch}.tar.gz`,
  ]);
  // No draft, no lock.
  expect(readdirSync(toolsDir)).toEqual([folder]);

  await findTemporal({ toolsDir, downloadSite: siteUrl('localhost'), ignorePath: true });
  expect(asked).toHaveLength(1);
});

test('an archive with another checksum is neither unpacked nor run', async () => {
  answer = 'another archive';
  const toolsDir = join(directory, 'another');
  const failed = search(toolsDir);
  await failed.ended;
  expect(failed.stdout()).toMatch(/download: .*temporal_cli_1\.5\.1_.* has the SHA-256 [0-9a-f]{64}, not /);
  expect(failed.stdout()).toMatch(/go install: /);
  expect(existsSync(join(directory, 'unchecked-ran'))).toBe(false);
  expect(readdirSync(toolsDir)).toEqual([]);
});

test('removes what a killed process left, and names every way that failed', async () => {
  answer = 'nothing there';
  const toolsDir = join(directory, 'after a kill');
  mkdirSync(join(toolsDir, 'new-cli-left'), { recursive: true });
  // Another process builds the server meanwhile.
  mkdirSync(join(toolsDir, 'new-server-draft'));
  const failed = search(toolsDir);
  await failed.ended;
  expect(failed.stdout()).toMatch(
    /building Temporal .* with Go.*cannot be had here:.*PATH: .*download: .*404.*go install: .*no network here, toolchain: auto.*TEMPORAL_ADDRESS/s,
  );
  expect(readdirSync(toolsDir)).toEqual(['new-server-draft']);
});

describe('on a machine that reaches the outside through a proxy only', () => {
  async function said(name: string, environment: Record<string, string>, host = NAME): Promise<string> {
    const running = search(join(directory, name), environment, host);
    await running.ended;
    return running.stdout();
  }

  test('the download goes through HTTPS_PROXY, which gets its password', async () => {
    const proxyUrl = `http://${CREDENTIALS}@127.0.0.1:${portOf(proxy)}`;
    expect(await said('through', { HTTPS_PROXY: proxyUrl })).toMatch(/^found .*temporal-cli-1\.5\.1-/m);
    const authorization = Buffer.from(decodeURIComponent(CREDENTIALS)).toString('base64');
    expect(connects).toEqual([`${NAME}:${portOf(site)} Basic ${authorization}`]);
  });

  test.each([
    [
      'a proxy that is not there',
      async () => `http://user:secret@127.0.0.1:${await freePort()}`,
      /ECONNREFUSED/,
    ],
    ['a proxy without http://', async () => 'user:secret@proxy.example:3128', /HTTPS_PROXY is no address/],
  ])('%s is named, its password is not', async (what, proxyUrl, why) => {
    const printed = await said(what, { HTTPS_PROXY: await proxyUrl() });
    expect(printed).toMatch(new RegExp(`download: .*${why.source}.*\n  go install: `));
    expect(printed).not.toContain('secret');
  });
});
