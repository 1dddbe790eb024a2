import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import postgres from 'postgres';
import { PROCESSES, roleOf } from '../../db/postgres/roles';
import { chooseLauncher } from '../../dev/postgres/account';
import { freePort } from '../../dev/ports';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { startWatchdog } from './watchdog';

/** Where Debian and Ubuntu put each version, with all of its programs; their own service is left alone. */
const PACKAGES = '/usr/lib/postgresql';

/**
 * A Postgres as an operating system's package brings it, which belongs to one test. Unlike the embedded one it comes with
 * pg_dump, pg_restore and pg_basebackup.
 */
export type PackagedPostgres = Awaited<ReturnType<typeof startPackagedPostgres>>;

/**
 * @param settingsFor server settings, without single quotes; they may name the folder.
 * @throws where no such package is installed.
 */
export async function startPackagedPostgres(
  settingsFor: (folder: string) => Readonly<Record<string, string>> = () => ({}),
) {
  const { programs, version } = await findPackage();
  const folder = await temporaryDirectory('packaged-postgres');
  const dismissWatchdog = startWatchdog(folder);
  const launcher = await chooseLauncher(folder, join(programs, 'initdb'));
  const port = await freePort();
  const password = randomBytes(12).toString('hex');
  const urlOf = (user: string, database: string) =>
    `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
  const adminUrl = urlOf('postgres', 'postgres');
  let [servers, dataDir] = [0, ''];

  async function run(program: string, ...args: string[]): Promise<string> {
    const child = launcher.spawn(resolve(programs, program), args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let [out, err] = ['', ''];
    child.stdout?.on('data', (chunk: Buffer) => (out += chunk.toString()));
    child.stderr?.on('data', (chunk: Buffer) => (err += chunk.toString()));
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`${program} ended with ${String(code)}:\n${err}`);
    return out;
  }
  async function start(directory: string): Promise<void> {
    dataDir = directory;
    const all = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settingsFor(folder) };
    const options = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    // pg_ctl hands the text to a shell.
    const quoted = options.map((one) => `'${one}'`).join(' ');
    await run('pg_ctl', '-D', dataDir, '-l', `${dataDir}.log`, '-t', '60', '-w', '-o', quoted, 'start');
  }
  async function create(): Promise<void> {
    const directory = join(folder, `server-${(servers += 1)}`);
    const passwordFile = join(folder, 'password');
    await writeFile(passwordFile, password, { mode: 0o600 });
    await launcher.own(passwordFile);
    const how = [
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
    ];
    await run('initdb', '-D', directory, ...how, '--locale=C.UTF-8', '--no-sync');
    await rm(passwordFile);
    await start(directory);
    const sql = postgres(adminUrl, { max: 1 });
    // As deploy/postgres/init.sh does.
    for (const login of ['quotes', ...PROCESSES.map(roleOf)])
      await sql.unsafe(`create role ${login} login password '${password}'`);
    await sql.unsafe('create database quotes owner quotes');
    await sql.end();
  }
  const stop = async () => {
    if (existsSync(join(dataDir, 'postmaster.pid')))
      await run('pg_ctl', '-D', dataDir, '-m', 'immediate', '-w', 'stop');
  };
  const server = {
    /** 15, for one. */
    version,
    /** Of the database `quotes`, as the user `quotes` that owns it; the same for each server. The roles of the processes have its password. */
    url: urlOf('quotes', 'quotes'),
    /** Of the superuser. */
    adminUrl,
    /** Folder of its programs. */
    programs,
    /** A folder that the programs may write to. */
    folder,
    /** The data of the server that runs now. */
    dataDir: () => dataDir,
    /** Runs one of its programs, or another by its path. @returns standard output; @throws with standard error when it fails */
    run,
    /** Ends the server by SIGQUIT, without a checkpoint, and deletes its data. */
    async lose() {
      await stop();
      await removeDirectory(dataDir);
    },
    /** A new, empty server in the place of the old one. */
    create,
    /** Starts a server on data that lie there already. */
    start,
    async close() {
      await stop();
      dismissWatchdog();
      await removeDirectory(folder);
    },
  };
  try {
    await create();
  } catch (error) {
    await server.close();
    throw error;
  }
  return server;
}

async function findPackage(): Promise<{ programs: string; version: number }> {
  const versions = (await readdir(PACKAGES).catch((): string[] => [])).map(Number);
  for (const version of versions.toSorted((a, b) => b - a)) {
    const programs = join(PACKAGES, String(version), 'bin');
    if (['initdb', 'pg_dump'].every((name) => existsSync(join(programs, name)))) return { programs, version };
  }
  throw new Error(`No Postgres with its programs in ${PACKAGES}: apt-get install postgresql`);
}
