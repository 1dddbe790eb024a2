import { readFileSync } from 'node:fs';
import net from 'node:net';
import tls from 'node:tls';

/** libpq's words. `allow` is taken for `prefer`. */
const MODES = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];
/** Postgres' message SSLRequest: its length and its code. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);

export interface ServerTls {
  /** Goes on without TLS when the server has none. */
  readonly optional: boolean;
  readonly options: tls.ConnectionOptions;
}

/**
 * Takes out of a database URL what it says of TLS: `sslmode`, as libpq has it but for its default, which is `disable` here,
 * and `sslrootcert`, the authority to trust (PEM file, or `system`). With an authority `require` is `verify-ca`.
 * @throws when there is no such mode, when the authority cannot be read, or when nothing would be held against it.
 */
export function readServerTls(databaseUrl: string): { url: string; tls: ServerTls | null } {
  const url = new URL(databaseUrl);
  const mode = url.searchParams.get('sslmode') ?? 'disable';
  const authority = url.searchParams.get('sslrootcert');
  if (url.searchParams.has('ssl')) throw new Error('say sslmode=… instead of ssl=…');
  if (!MODES.includes(mode)) throw new Error(`sslmode is one of ${MODES.join(', ')}`);
  const encrypts = ['require', 'verify-ca', 'verify-full'].includes(mode);
  if (authority !== null && !encrypts) throw new Error('sslrootcert wants sslmode=verify-full or verify-ca');
  if (mode === 'disable' && !url.searchParams.has('sslmode')) return { url: databaseUrl, tls: null };
  url.searchParams.delete('sslmode');
  url.searchParams.delete('sslrootcert');
  if (mode === 'disable') return { url: url.href, tls: null };
  const verifies = mode.startsWith('verify') || authority !== null;
  const options = {
    rejectUnauthorized: verifies,
    ...(authority !== null && authority !== 'system' && { ca: readFileSync(authority) }),
    // Its name, too.
    ...(mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
  };
  return { url: url.href, tls: { optional: !encrypts, options } };
}

/**
 * Connects to Postgres and agrees on TLS with it.
 * @throws when that takes longer than `timeoutMs`, when the server has no TLS (unless it is optional), and when its certificate does not do.
 */
export async function connectSecurely(
  server: { readonly host: string; readonly port: number },
  wanted: ServerTls,
  timeoutMs: number,
): Promise<net.Socket> {
  const socket = net.connect(server);
  const timer = setTimeout(
    () => socket.destroy(new Error(`Postgres did not answer within ${timeoutMs} ms`)),
    timeoutMs,
  );
  try {
    await heard(socket, 'connect');
    socket.write(SSL_REQUEST);
    const answer = ((await heard(socket, 'data')) as Buffer).toString('latin1');
    if (answer === 'N' && wanted.optional) return socket;
    if (answer === 'N') throw new Error('Postgres has no TLS');
    // An ErrorResponse from the server; and anything behind the one letter was not sent by the holder of the
    // certificate.
    if (answer !== 'S') throw new Error('Postgres did not agree on TLS');
    const { host } = server;
    const secured = tls.connect({ ...wanted.options, socket, host, servername: net.isIP(host) ? '' : host });
    await heard(secured, 'secureConnect');
    return secured;
  } catch (error) {
    socket.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** The next event of this name. @throws what ends the socket before. */
function heard(socket: net.Socket, event: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    socket.once(event, resolve);
    socket.once('error', reject);
    socket.once('close', () => reject(new Error('Postgres closed the connection')));
  });
}
