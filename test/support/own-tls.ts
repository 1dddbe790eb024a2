import postgres from 'postgres';
import type { OwnPostgres } from './postgres-server';

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
