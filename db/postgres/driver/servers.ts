/** A server of a database URL. */
export interface Server {
  readonly host: string;
  readonly port: number;
}

export interface Servers {
  /** The URL with the first server alone, and without `target_session_attrs`. */
  readonly url: string;
  readonly servers: readonly [Server, ...Server[]];
  /** Only a server that takes writes will do. */
  readonly leaderOnly: boolean;
}

const URL_PARTS = /^([a-z]+:\/\/(?:[^/?#]*@)?)([^/?#@]*)(.*)$/is;
const HOST = /^(\[[^\]]+\]|[^:[\]]*)(?::(\d+))?$/;
const DEFAULT_PORT = 5432;

/**
 * Takes out of a database URL which servers it names, in libpq's form: `postgres://a,b:5433/db?target_session_attrs=read-write`.
 * `read-write` and `primary` mean the one that takes writes, `any` whichever answers. Several servers without the parameter are taken
 * for `read-write`, as this service writes; one server is taken as it is.
 * @throws when it is no URL, or asks for a server of another kind.
 */
export function readServers(databaseUrl: string): Servers {
  const [, before, hosts, after] = URL_PARTS.exec(databaseUrl) ?? [];
  if (before === undefined || hosts === undefined || after === undefined) throw new Error('not a URL');
  const [first, ...others] = hosts.split(',').map(readServer);
  const url = new URL(`${before}${hosts.split(',')[0]}${after}`);
  const wanted = url.searchParams.get('target_session_attrs');
  if (wanted !== null && !['read-write', 'primary', 'any'].includes(wanted))
    throw new Error('target_session_attrs is one of read-write, primary, any');
  url.searchParams.delete('target_session_attrs');
  return {
    url: wanted === null && others.length === 0 ? databaseUrl : url.href,
    servers: [first as Server, ...others],
    leaderOnly: wanted === null ? others.length > 0 : wanted !== 'any',
  };
}

function readServer(text: string, _at: number, all: readonly string[]): Server {
  const [, host, port = DEFAULT_PORT] = HOST.exec(text) ?? [];
  if (host === undefined || (host === '' && all.length > 1)) throw new Error('not a list of hosts');
  return { host: host.replaceAll(/[[\]]/g, '') || 'localhost', port: Number(port) };
}

export const serverName = ({ host, port }: Server) => `${host.includes(':') ? `[${host}]` : host}:${port}`;
