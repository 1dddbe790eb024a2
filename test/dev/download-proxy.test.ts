import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer as createHttp, type Server } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { freePort } from '../support/free-port';
import { startNode } from '../support/project-process';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';
import { createTestTls } from '../support/tls';

// A machine that reaches the outside through a proxy only. Node's own fetch would not ask it.
const NAME = 'temporal.download.invalid';
const CREDENTIALS = 'user:password%20here';

let directory: string;
let site: Server;
let proxy: Server;
/** What the proxy was asked to connect to, with what it was shown. */
let connects: string[];
const portOf = (server: Server) => (server.address() as AddressInfo).port;
const listening = async (server: Server) => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
};

beforeAll(async () => {
  directory = await temporaryDirectory('proxy');
  const program = join(directory, 'temporal');
  writeFileSync(program, "#!/bin/sh\necho 'temporal version 1.10.2'\n");
  chmodSync(program, 0o755);
  execFileSync('tar', ['-czf', 'archive.tar.gz', 'temporal'], { cwd: directory });
  // A Go that cannot build.
  mkdirSync(join(directory, 'bin'));
  writeFileSync(join(directory, 'bin', 'go'), '#!/bin/sh\n[ "$1" != install ]\n');
  chmodSync(join(directory, 'bin', 'go'), 0o755);
  const { ca, cert, key } = await createTestTls([
    { type: 'dns', value: NAME },
    { type: 'dns', value: 'localhost' },
  ]);
  writeFileSync(join(directory, 'ca.pem'), ca);
  const archive = readFileSync(join(directory, 'archive.tar.gz'));
  site = await listening(createHttps({ cert, key }, (_request, response) => response.end(archive)));
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
  await listening(proxy);
});

beforeEach(() => (connects = []));

afterAll(async () => {
  for (const server of [site, proxy]) {
    server.closeAllConnections();
    server.close();
  }
  await removeDirectory(directory);
});

/** What `npm start` finds out with these settings, without a Temporal on the PATH and without a Go that works. */
async function search(name: string, environment: Record<string, string>) {
  const toolsDir = join(directory, name);
  mkdirSync(toolsDir);
  const host = name === 'direct' ? 'localhost' : NAME;
  const options = JSON.stringify({
    toolsDir,
    downloadSite: `https://${host}:${portOf(site)}`,
    ignorePath: true,
  });
  const script = `require('./dev/temporal/executable.ts').findTemporal(${options})
    .then((file) => console.log('found ' + file), (error) => console.log(error.message))`;
  const running = startNode(['--import', 'tsx', '-e', script], {
    cwd: join(__dirname, '..', '..'),
    environment: {
      PATH: `${join(directory, 'bin')}:${process.env['PATH']}`,
      NODE_EXTRA_CA_CERTS: join(directory, 'ca.pem'),
      ...environment,
    },
  });
  await running.ended;
  return running.stdout();
}

test.each(['HTTPS_PROXY', 'https_proxy'])(
  'the download goes through %s, which gets its password',
  async (variable) => {
    const said = await search(`through ${variable}`, {
      [variable]: `http://${CREDENTIALS}@127.0.0.1:${portOf(proxy)}`,
    });
    expect(said).toMatch(/^found .*temporal-cli-1\.10\.2-/);
    const authorization = Buffer.from(decodeURIComponent(CREDENTIALS)).toString('base64');
    expect(connects).toEqual([`${NAME}:${portOf(site)} Basic ${authorization}`]);
  },
);

test('goes past the proxy to what NO_PROXY names', async () => {
  const settings = { HTTPS_PROXY: `http://127.0.0.1:${portOf(proxy)}`, NO_PROXY: 'example.com,localhost' };
  expect(await search('direct', settings)).toMatch(/^found /);
  expect(connects).toEqual([]);
});

test.each([
  [
    'a proxy that is not there',
    async () => `http://user:secret@127.0.0.1:${await freePort()}`,
    /ECONNREFUSED/,
  ],
  ['a proxy without http://', async () => 'user:secret@proxy.example:3128', /HTTPS_PROXY is no address/],
])('%s is named, its password is not', async (what, proxyUrl, said) => {
  const printed = await search(what, { HTTPS_PROXY: await proxyUrl() });
  expect(printed).toMatch(new RegExp(`download: .*${said.source}.*\n  go install: `));
  expect(printed).not.toContain('secret');
});
