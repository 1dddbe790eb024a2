import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { startPostgres, type RunningPostgres } from '../../dev/postgres';
import { chooseLauncher } from '../../dev/postgres/account';
import { findPostgresBinaries } from '../../dev/postgres/cluster';
import { childrenOf, isRunning } from '../../dev/processes';
import { freePort } from '../../dev/ports';
import { startWatchdog } from '../../testbed/watchdog';

let directory: string;
let dataDir: string;
let port: number;
let dismissWatchdog: () => void;

beforeAll(async () => {
  // mkdtemp gives 0700: run by root, the server's account cannot enter it by itself.
  directory = await mkdtemp(join(tmpdir(), 'pfqs a closed place-'));
  dismissWatchdog = startWatchdog(directory);
  dataDir = join(directory, 'data of mine');
  port = await freePort();
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  dismissWatchdog();
});

async function start(settings: Record<string, string> = { fsync: 'off' }): Promise<RunningPostgres> {
  return startPostgres({ dataDir, port, password: `p@ss/wörd '"`, settings });
}

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const sql = postgres(url, { max: 1, connect_timeout: 2, onnotice: () => undefined });
  try {
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

test('creates a cluster whose path holds spaces, replacing a half-finished one, and keeps its data', async () => {
  await mkdir(`${dataDir}.new`, { recursive: true });
  await writeFile(join(`${dataDir}.new`, 'PG_VERSION'), '18\n');

  const first = await start();
  await query(first.url, 'create table kept as select 1 as one');
  await first.stop();
  expect(await isRunning(first.pid)).toBe(false);

  const second = await start();
  expect(await query(second.url, 'select one from kept')).toEqual([{ one: 1 }]);
  await second.stop();
  await second.stop();
  expect((await readdir(directory)).toSorted()).toEqual(['data of mine', 'data of mine.log']);
});

test('listens on loopback only, without a socket file, asks for the password, sorts by code point', async () => {
  const server = await start();
  const settings = await query(
    server.url,
    `select current_setting('listen_addresses') as listens, current_setting('unix_socket_directories') as sockets,
            current_setting('server_encoding') as encoding, 'a' > 'B' as by_code_point`,
  );
  expect(settings).toEqual([{ listens: '127.0.0.1', sockets: '', encoding: 'UTF8', by_code_point: true }]);
  const wrong = new URL(server.url);
  wrong.password = 'guess';
  await expect(query(wrong.href, 'select 1')).rejects.toMatchObject({ code: '28P01' });
  await server.stop();
  expect((await stat(dataDir)).mode & 0o777).toBe(0o700);
});

/** What the account may do that its server runs under: as root, in a folder that only root may enter. */
test('has no capability, and reads no file that only root may read', async () => {
  const closed = join(directory, 'of-root');
  await writeFile(closed, 'secret', { mode: 0o600 });
  const server = await start();
  const children = await childrenOf(server.pid);
  for (const pid of [server.pid, ...children]) {
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
      expect([set, status.match(new RegExp(`^${set}:\\s+(\\w+)$`, 'm'))?.[1]]).toEqual([set, '0'.repeat(16)]);
    expect(status).toMatch(/^Groups:\s*$/m);
  }
  expect(children.length).toBeGreaterThan(2);
  for (const file of [closed, '/etc/shadow'])
    await expect(query(server.url, `select pg_read_file('${file}')`)).rejects.toMatchObject({
      code: '42501',
    });
  await server.stop();
});

test('runs from a project in a folder that only root may enter', async () => {
  const version = `0-test-${process.pid}`;
  const folder = await mkdtemp(join(directory, 'project-'));
  const project = join(folder, 'native');
  await symlink((await findPostgresBinaries()).root, project);
  const data = join(folder, 'data');
  await mkdir(data, { mode: 0o700 });
  try {
    const launcher = await chooseLauncher(data, { root: project, version });
    const programs: string[] = [];
    // The second start finds the copy.
    for (const way of [launcher, await chooseLauncher(data, { root: project, version })]) {
      const child = way.spawn('initdb', data, ['--show', '-U', 'postgres'], { stdio: 'ignore' });
      expect(await once(child, 'exit')).toEqual([0, null]);
      programs.push(child.spawnfile);
    }
    expect(new Set(programs).size).toBe(1);
    expect(programs[0]?.startsWith(folder)).toBe(process.getuid?.() !== 0);
  } finally {
    const copy = `postgres-${version}-${process.platform}-${process.arch}`;
    await rm(join('/var/cache/partner-finance-quote-service', copy), { recursive: true, force: true });
  }
});
