import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seedDemo } from '../dev/seed';
import { migrateDatabase } from '../db/migrate';
import { startPostgres } from '../dev/postgres';
import { load, type LoadResult } from './load';

/**
 * `npm run bench:quote`: the quote path against a bare Fastify route with one prepared insert per request, in one
 * run on one Postgres (fsync and synchronous_commit on). Both speak plain HTTP on loopback: ours as behind a named
 * proxy. Rounds alternate, and each figure is the median of its rounds. `--json` prints one object.
 */

const ROUNDS = 5;
/** Requests per round, so that a round lasts a second or two on a slow machine. */
const REQUESTS = { 1: 2_000, 16: 10_000, 64: 20_000 } as const;
const MEMORY_QUOTES = 100_000;
type Connections = keyof typeof REQUESTS;

const asJson = process.argv.includes('--json');
const say = (line: string) => asJson || console.log(line);

interface Target {
  readonly child: ChildProcess;
  readonly port: number;
  readonly headers: Record<string, string>;
}

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'pfqs-bench-'));
  const children: ChildProcess[] = [];
  const postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    port: await freePort(),
    password: 'bench',
    settings: { shared_buffers: '256MB', max_wal_size: '4GB' },
  });
  try {
    await migrateDatabase(postgres.url);
    const demo = await seedDemo(postgres.url, undefined);
    const standard = demo.merchants.find((merchant) => merchant.shows.startsWith('standard rates'));
    const body = JSON.stringify({
      merchant_id: standard?.id,
      partner_id: demo.partnerId,
      loan_amount: '900.00',
      customer_deposit: '100.00',
      merchant_finance_url: 'https://shop.example/finance?basket=1',
      merchant_reference: 'basket 2041',
    });
    const ours = await startOurs(postgres.url, demo.apiKeys.test);
    children.push(ours.child);
    const bare = await startBare(postgres.url);
    children.push(bare.child);
    const run = ({ port, headers }: Target, connections: Connections, requests: number) =>
      load({ port, headers, body, connections, requests });

    for (const target of [bare, ours]) await run(target, 64, 5_000);
    const figures = new Map<Connections, { bare: LoadResult; ours: LoadResult }>();
    for (const connections of [1, 16, 64] as const) {
      const results = { bare: [] as LoadResult[], ours: [] as LoadResult[] };
      for (let round = 0; round < ROUNDS; round += 1) {
        results.bare.push(await run(bare, connections, REQUESTS[connections]));
        results.ours.push(await run(ours, connections, REQUESTS[connections]));
      }
      figures.set(connections, { bare: median(results.bare), ours: median(results.ours) });
      report(connections, median(results.bare), median(results.ours));
    }
    const rss = await memoryOver(ours, run);
    say(`\nmemory over ${MEMORY_QUOTES} quotes: ${rss.before} MB → ${rss.after} MB, growth ${rss.growth} MB`);
    const rows = countRows(figures);
    if (asJson) console.log(JSON.stringify({ ...rows, rss_growth_mb: rss.growth, rss_mb: rss.after }));
    const failures = [...figures.values()].reduce(
      (sum, one) => sum + one.bare.failures + one.ours.failures,
      0,
    );
    if (failures > 0) throw new Error(`${failures} answers were not 200`);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

function report(connections: number, bare: LoadResult, ours: LoadResult): void {
  if (connections === 1) say('connections   what     per second    p50 ms    p99 ms');
  for (const [name, one] of Object.entries({ bare, ours })) {
    say(
      `${String(connections).padStart(11)}   ${name.padEnd(6)} ${one.perSecond.toFixed(0).padStart(12)} ${one.p50Ms.toFixed(2).padStart(9)} ${one.p99Ms.toFixed(2).padStart(9)}`,
    );
  }
  say(
    `${''.padStart(11)}   ours/bare ${(ours.perSecond / bare.perSecond).toFixed(2).padStart(9)} ${(ours.p50Ms / bare.p50Ms).toFixed(2).padStart(9)} ${(ours.p99Ms / bare.p99Ms).toFixed(2).padStart(9)}`,
  );
}

function countRows(figures: ReadonlyMap<Connections, { bare: LoadResult; ours: LoadResult }>) {
  const round = (value: number) => Math.round(value * 1000) / 1000;
  const ratio = (connections: Connections, of: 'perSecond' | 'p50Ms' | 'p99Ms') => {
    const one = figures.get(connections);
    return one === undefined ? Number.NaN : round(one.ours[of] / one.bare[of]);
  };
  const absolute = Object.fromEntries(
    [...figures].flatMap(([connections, { bare, ours }]) =>
      Object.entries({ bare, ours }).flatMap(([name, one]) => [
        [`${name}_per_second_${connections}`, round(one.perSecond)],
        [`${name}_p50_ms_${connections}`, round(one.p50Ms)],
        [`${name}_p99_ms_${connections}`, round(one.p99Ms)],
      ]),
    ),
  );
  return {
    throughput_ratio_64: ratio(64, 'perSecond'),
    throughput_ratio_16: ratio(16, 'perSecond'),
    throughput_ratio_1: ratio(1, 'perSecond'),
    p99_ratio_16: ratio(16, 'p99Ms'),
    ...absolute,
  };
}

/** Resident memory before and after many quotes; the process is warm, and garbage is let settle for two seconds. */
async function memoryOver(
  ours: Target,
  run: (target: Target, connections: Connections, requests: number) => Promise<LoadResult>,
) {
  const settle = () => new Promise((resolve) => setTimeout(resolve, 2_000));
  const rssMb = () => {
    const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${ours.child.pid}/status`, 'utf8'))?.[1];
    return Math.round(Number(line) / 1024);
  };
  await settle();
  const before = rssMb();
  await run(ours, 64, MEMORY_QUOTES);
  await settle();
  const after = rssMb();
  return { before, after, growth: after - before };
}

async function startOurs(databaseUrl: string, key: string): Promise<Target> {
  const port = await freePort();
  const internalPort = await freePort();
  const child = launch('bin/api.ts', [], {
    DATABASE_URL: databaseUrl,
    API_PORT: String(port),
    INTERNAL_PORT: String(internalPort),
    TRUSTED_PROXIES: '127.0.0.1',
    RATE_LIMIT_PER_MINUTE: '100000000',
  });
  await answers(internalPort);
  return { child, port, headers: { Authorization: `Bearer ${key}`, 'X-Forwarded-Proto': 'https' } };
}

async function startBare(databaseUrl: string): Promise<Target> {
  const port = await freePort();
  const child = launch('bench/bare-route.ts', [databaseUrl, String(port)], {});
  await answers(port);
  return { child, port, headers: {} };
}

function launch(file: string, args: string[], environment: Record<string, string>): ChildProcess {
  return spawn(process.execPath, ['--import', 'tsx', file, ...args], {
    cwd: join(__dirname, '..'),
    env: { PATH: process.env['PATH'], ...environment },
    // The log goes where a collector would read it from: a pipe that is read.
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** The round whose throughput lies in the middle; its latencies belong together with it. */
function median(results: readonly LoadResult[]): LoadResult {
  const sorted = results.toSorted((a, b) => a.perSecond - b.perSecond);
  const middle = sorted[Math.floor(sorted.length / 2)];
  if (middle === undefined) throw new Error('no rounds');
  const p99s = results.map((result) => result.p99Ms).toSorted((a, b) => a - b);
  return { ...middle, p99Ms: p99s[Math.floor(p99s.length / 2)] ?? middle.p99Ms };
}

async function answers(port: number): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (
      await fetch(`http://127.0.0.1:${port}/health`).then(
        () => true,
        () => false,
      )
    )
      return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`nothing answers on port ${port}`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
