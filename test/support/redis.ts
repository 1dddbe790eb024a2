import { freePort } from '../../dev/ports';
import { startWithFiles } from '../../testbed/project-process';

/** A real redis-server of one's own: loopback, nothing kept on disk. */
export type TestRedis = Awaited<ReturnType<typeof startRedis>>;

export interface RedisProtection {
  readonly password: string;
  /** PEM, for `localhost`. */
  readonly tls: { readonly cert: string; readonly key: string };
}

/** @param protection with it the server speaks TLS only and wants the password, which the address then contains. */
export async function startRedis(protection?: RedisProtection) {
  const port = await freePort();
  const usual = ['--bind', '127.0.0.1', '--set-proc-title', 'no', '--appendonly', 'no', '--save', ''];
  const { child, close } = await startWithFiles({
    name: 'redis',
    command: (file) => [
      'redis-server',
      ...(protection ? [file('redis.conf'), '--port', '0', '--tls-port'] : ['--port']),
      String(port),
      ...(protection ? ['--tls-cert-file', file('cert.pem'), '--tls-key-file', file('key.pem')] : []),
      ...(protection ? ['--tls-auth-clients', 'no'] : []),
      ...usual,
      '--dir',
      file('.'),
    ],
    files: protection
      ? {
          'redis.conf': `requirepass ${protection.password}\n`,
          'cert.pem': protection.tls.cert,
          'key.pem': protection.tls.key,
        }
      : {},
    serves: (printed) => printed.includes('Ready to accept connections'),
  });
  return {
    url: protection ? `rediss://:${protection.password}@localhost:${port}` : `redis://127.0.0.1:${port}`,
    port,
    /** SIGKILL. */
    close,
    /** SIGSTOP: connections stay open, and nothing answers. */
    freeze: () => void child.kill('SIGSTOP'),
    unfreeze: () => void child.kill('SIGCONT'),
  };
}
