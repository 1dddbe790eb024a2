import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import postgres from 'postgres';
import { startPostgres, type RunningPostgres } from '../../dev/postgres';
import { isRunning } from '../../dev/processes';
import { freePort } from '../../dev/ports';
import { startWatchdog } from '../support/watchdog';

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

test('runs in a process group of its own and never as root', async () => {
  const server = await start();
  // A signal to our group, as a Ctrl-C in the terminal sends, would reach process groups by number: the server leads its own.
  expect(() => process.kill(-server.pid, 0)).not.toThrow();
  const [row] = await query(server.url, `select pg_read_file('/proc/self/status') as status`);
  expect(String(row?.['status'])).not.toMatch(/^Uid:\s+0\s/m);
  await server.stop();
});
