import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../dev/ports';
import { removeDirectory, temporaryDirectory } from './temporary-directory';
import { startWatchdog } from './watchdog';

/** A real redis-server of one's own: loopback, nothing kept on disk. */
export type TestRedis = Awaited<ReturnType<typeof startRedis>>;

export interface RedisProtection {
  readonly password: string;
  /** PEM, for `localhost`. */
  readonly tls: { readonly cert: string; readonly key: string };
}

/**
 * @param protection with it the server speaks TLS only and wants the password, which the address then contains.
 * @throws when `redis-server` is not installed.
 */
export async function startRedis(protection?: RedisProtection) {
  const port = await freePort();
  let running = await launch(port, protection);
  return {
    url: protection ? `rediss://:${protection.password}@localhost:${port}` : `redis://127.0.0.1:${port}`,
    port,
    stop: () => running.end('SIGTERM'),
    kill: () => running.end('SIGKILL'),
    /** Again on the same port, empty; after stop or kill. */
    start: async () => {
      running = await launch(port, protection);
    },
    /** SIGSTOP: connections stay open, and nothing answers. */
    freeze: () => void running.child.kill('SIGSTOP'),
    unfreeze: () => void running.child.kill('SIGCONT'),
  };
}

async function launch(port: number, protection: RedisProtection | undefined) {
  const directory = await temporaryDirectory('redis');
  const dismissWatchdog = startWatchdog(directory);
  const own = protection ? await protect(directory, port, protection) : ['--port', String(port)];
  const usual = ['--bind', '127.0.0.1', '--save', '', '--set-proc-title', 'no', '--appendonly', 'no'];
  const options = [...own, ...usual, '--dir', directory];
  const child = spawn('redis-server', options, { detached: true, stdio: 'ignore' });
  let failure: NodeJS.ErrnoException | undefined;
  child.once('error', (error) => (failure = error));
  child.unref();
  while (!(await listens(port))) {
    if (failure?.code === 'ENOENT')
      throw new Error('redis-server is not installed: apt-get install redis-server (.ci/run does it)');
    if (failure || child.exitCode !== null)
      throw failure ?? new Error(`redis-server ended with ${child.exitCode}`);
    await sleep(20);
  }
  const end = async (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit');
      child.ref();
      child.kill(signal);
      child.kill('SIGCONT');
      await exited;
    }
    await removeDirectory(directory);
    dismissWatchdog();
  };
  return { child, end };
}

async function protect(
  directory: string,
  port: number,
  { password, tls }: RedisProtection,
): Promise<string[]> {
  const [cert = '', key = '', config = ''] = ['cert.pem', 'key.pem', 'redis.conf'].map((name) =>
    join(directory, name),
  );
  await writeFile(cert, tls.cert);
  await writeFile(key, tls.key, { mode: 0o600 });
  await writeFile(config, `requirepass ${password}\n`, { mode: 0o600 });
  const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-auth-clients', 'no'];
  return [config, '--port', '0', '--tls-port', String(port), ...files];
}

async function listens(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      resolve(true);
      socket.destroy();
    });
    socket.once('error', () => resolve(false));
  });
}
