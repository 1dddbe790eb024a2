import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../dev/ports';
import { metricIn } from '../../testbed/http-call';
import { asRole } from '../../testbed/roles';
import type { TestTls } from '../../testbed/tls';
import type { Bench } from './bench';
import { answers, nextMessage, startChild } from './children';
import type { Server } from './load';

/** As the API is started in production (docs/operations/production.md). */
const NODE_ARGS = ['--max-semi-space-size=32', '--no-allocation-site-pretenuring'];

/** A server that answers quotes, in a process of its own, and what it is sent. */
export interface Target extends Server {
  readonly child: ChildProcess;
  readonly internalPort: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface TargetOptions {
  readonly databaseUrl: string;
  readonly body: string;
  /** For a server that ends TLS itself. Default: plain HTTP, as behind a proxy. */
  readonly tls?: TestTls | null;
}

/**
 * The real API process (bin/api.ts) with every check, hook, metric and log line on; only the rate limit is raised. Without
 * TLS of its own it trusts a proxy by its address.
 */
export async function startOurs(bench: Bench, options: TargetOptions & { key: string }): Promise<Target> {
  const { databaseUrl, body, key, tls = null } = options;
  const [port, internalPort] = [await freePort(), await freePort()];
  const files = tlsFiles(bench, tls);
  const child = startChild(bench, 'bin/api.ts', {
    // The watchdog finds it by its folder.
    args: [`--files=${bench.directory}`],
    nodeArgs: NODE_ARGS,
    env: {
      DATABASE_URL: asRole(databaseUrl, 'api'),
      API_PORT: String(port),
      INTERNAL_PORT: String(internalPort),
      RATE_LIMIT_PER_MINUTE: '100000000',
      ...(files === null
        ? { TRUSTED_PROXIES: '127.0.0.1' }
        : { TLS_CERT_FILE: files[0], TLS_KEY_FILE: files[1] }),
    },
  });
  await answers(`http://127.0.0.1:${internalPort}/ready`);
  const headers = {
    Authorization: `Bearer ${key}`,
    ...(files === null && { 'X-Forwarded-Proto': 'https' }),
  };
  return { child, port, ca: tls?.ca ?? null, internalPort, headers, body };
}

/** The bare route (bench/quote/bare-route.ts), which is sent the same bodies. */
export async function startBare(bench: Bench, options: TargetOptions): Promise<Target> {
  const { databaseUrl, body, tls = null } = options;
  const args = [databaseUrl, ...(tlsFiles(bench, tls) ?? [])];
  const child = startChild(bench, 'bench/quote/bare-route.ts', { args, nodeArgs: NODE_ARGS });
  const { port } = await nextMessage<{ port: number }>(child);
  return { child, port, ca: tls?.ca ?? null, internalPort: port, headers: {}, body };
}

function tlsFiles({ directory }: Bench, tls: TestTls | null): [cert: string, key: string] | null {
  if (tls === null) return null;
  const files = [join(directory, 'cert.pem'), join(directory, 'key.pem')] as [string, string];
  writeFileSync(files[0], tls.cert);
  writeFileSync(files[1], tls.key, { mode: 0o600 });
  return files;
}

/** The quote that benches ask for. */
export const quoteBody = (partnerId: string, merchantId: string): string =>
  JSON.stringify({
    merchant_id: merchantId,
    partner_id: partnerId,
    loan_amount: '900.00',
    customer_deposit: '100.00',
    merchant_finance_url: 'https://shop.example/finance?basket=1',
    merchant_reference: 'basket 2041',
  });

async function metricsOf(port: number): Promise<string> {
  const url = `http://127.0.0.1:${port}/metrics`;
  // A second call opens a new connection, when the server has just closed the one that was kept.
  const answer = await fetch(url).catch(() => fetch(url));
  return answer.text();
}

/** The p99 of the delay of its event loop since the last reading, in milliseconds. */
export const loopP99Ms = async (port: number): Promise<number> =>
  metricIn(await metricsOf(port), 'nodejs_eventloop_lag_p99_seconds') * 1_000;

/** How many deliveries a worker has started so far, by the path of their first attempt. @param port of its metrics. */
export async function startsByPath(port: number): Promise<ReadonlyMap<string, number>> {
  const lines = (await metricsOf(port)).matchAll(/^pfqs_delivery_path_total\{.*?path="(\w+)".*?\} (\d+)/gm);
  return new Map([...lines].map(([, path = '', count]) => [path, Number(count)]));
}
