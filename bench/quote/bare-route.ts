import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import postgres from 'postgres';
import { TLS } from '../../api/listener';

/**
 * The floor of `npm run bench:quote`: what anyone would write first. A Fastify route that parses the body and does
 * one prepared insert per request: no key, no limit, no contract, no pricing, no log, and a short fixed answer. Its id
 * is the cheapest there is, so that the floor is not lowered by a slow source of randomness. Its TLS has our options.
 */
async function main(): Promise<void> {
  const [url = '', cert, key] = process.argv.slice(2);
  const sql = postgres(url, { max: 10 });
  await sql`create table if not exists bare_quotes (id text primary key, created_at timestamptz not null default now(), body json not null)`;
  const https =
    cert === undefined || key === undefined
      ? null
      : { ...TLS, cert: readFileSync(cert), key: readFileSync(key) };
  const app = Fastify({ https });
  app.post('/v1/finance-quote', async (request) => {
    const id = `qte_${randomUUID()}`;
    await sql`insert into bare_quotes (id, body) values (${id}, ${JSON.stringify(request.body)})`;
    return { success: true, data: { service_quote_id: id } };
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  process.on('SIGTERM', () => process.exit(0));
  process.on('disconnect', () => process.exit(0));
  process.send?.({ port: (app.server.address() as AddressInfo).port });
}

void main();
