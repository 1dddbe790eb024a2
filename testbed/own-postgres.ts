import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import postgres from 'postgres';
import { type RunningPostgres, startPostgres } from '../dev/postgres';
import { childrenOf, signal, waitForEnd } from '../dev/processes';
import { freePort } from '../dev/ports';
import { watchedDirectory } from './watchdog';

/** A durable Postgres that belongs to one test, to be broken by it. Not migrated. */
export type OwnPostgres = Awaited<ReturnType<typeof startOwnPostgres>>;

/** @param parent folder that its data lie in; default: that of temporary files. */
export async function startOwnPostgres(settings: Record<string, string | number> = {}, parent?: string) {
  const { directory, remove } = await watchedDirectory('own-postgres', parent);
  const port = await freePort();
  const password = randomBytes(12).toString('hex');
  let server: RunningPostgres;

  const start = async () => {
    server = await startPostgres({
      dataDir: join(directory, 'postgres'),
      port,
      password,
      settings: { max_connections: 60, shared_buffers: '32MB', ...settings },
    });
  };
  /** Its sessions lead process groups of their own, so they are found as its children, and while it lives. */
  const everyProcess = async () => [server.pid, ...(await childrenOf(server.pid))];
  /** The server first: frozen, it starts no new session. */
  const freeze = async () => {
    signal(server.pid, 'SIGSTOP');
    for (const pid of await everyProcess()) signal(pid, 'SIGSTOP');
  };
  const unfreeze = async () => {
    for (const pid of await everyProcess()) signal(pid, 'SIGCONT');
  };

  await start().catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  return {
    url: server!.url,
    port,
    pid: () => server.pid,
    /** Again, on the same data and port; after any of the three stops. */
    start,
    /** Fast shutdown: sessions ended, checkpoint written. */
    stop: () => server.stop(),
    /** Immediate shutdown: no checkpoint; the next start recovers. */
    stopImmediately: async () => {
      signal(server.pid, 'SIGQUIT');
      await server.exited;
    },
    /** kill -9 of the server and all of its sessions. */
    kill: async () => {
      await freeze();
      const pids = await everyProcess();
      for (const pid of pids) signal(pid, 'SIGKILL');
      await Promise.all([server.exited, ...pids.map((pid) => waitForEnd(pid, 5_000))]);
    },
    /** SIGSTOP of the server and all of its sessions: connections stay open, and nothing answers. */
    freeze,
    unfreeze,
    close: async () => {
      await unfreeze();
      signal(server.pid, 'SIGQUIT');
      await server.stop();
      await remove();
    },
  };
}

/** Gives a Postgres of one's own a certificate, PEM, and has it speak TLS. */
export async function enableTls(server: OwnPostgres, own: { readonly cert: string; readonly key: string }) {
  const admin = postgres(server.url, { max: 1 });
  // Written by the server itself, as its key has to be its own.
  for (const [file, text] of [
    ['server.crt', own.cert],
    ['server.key', own.key],
  ] as const)
    await admin.unsafe(
      `copy (select unnest(string_to_array('${text}', E'\\n'))) to program 'umask 077; cat > ${file}'`,
    );
  await admin`alter system set ssl = on`;
  await admin`select pg_reload_conf()`;
  await admin.end();
}
