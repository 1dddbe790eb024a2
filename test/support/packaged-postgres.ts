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

/** @throws where no such package is installed. */
export async function startPackagedPostgres() {
  const programs = await findPackage();
  const folder = await temporaryDirectory('packaged-postgres');
  const dismissWatchdog = startWatchdog(folder);
  const launcher = await chooseLauncher(folder, join(programs, 'initdb'));
  const port = await freePort();
  const password = randomBytes(12).toString('hex');
  const urlOf = (user: string, database: string) =>
    `postgres://${user}:${password}@127.0.0.1:${port}/${database}`;
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
  async function create(): Promise<void> {
    dataDir = join(folder, `server-${(servers += 1)}`);
    const passwordFile = join(folder, 'password');
    await writeFile(passwordFile, password, { mode: 0o600 });
    await launcher.own(passwordFile);
    const how = [
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth=scram-sha-256',
      '--encoding=UTF8',
    ];
    await run('initdb', '-D', dataDir, ...how, '--locale=C.UTF-8', '--no-sync');
    await rm(passwordFile);
    // pg_ctl hands the text to a shell.
    const options = `-c port=${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=''`;
    await run('pg_ctl', '-D', dataDir, '-l', `${dataDir}.log`, '-t', '60', '-w', '-o', options, 'start');
    const sql = postgres(urlOf('postgres', 'postgres'), { max: 1 });
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
    /** Of the database `quotes`, as the user `quotes` that owns it; the same for each server. The roles of the processes have its password. */
    url: urlOf('quotes', 'quotes'),
    /** A folder that the programs may write to. */
    folder,
    /** Runs one of its programs, or another by its path. @returns standard output; @throws with standard error when it fails */
    run,
    /** Ends the server by SIGQUIT, without a checkpoint, and deletes its data. */
    async lose() {
      await stop();
      await removeDirectory(dataDir);
    },
    /** A new, empty server in the place of the old one. */
    create,
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

/** The folder of its programs. */
async function findPackage(): Promise<string> {
  const versions = (await readdir(PACKAGES).catch((): string[] => [])).map(Number);
  for (const version of versions.toSorted((a, b) => b - a)) {
    const programs = join(PACKAGES, String(version), 'bin');
    if (['initdb', 'pg_dump'].every((name) => existsSync(join(programs, name)))) return programs;
  }
  throw new Error(`No Postgres with its programs in ${PACKAGES}: apt-get install postgresql`);
}
