import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../dev/postgres';
import { seedDemo } from '../dev/seed';
import { freePort } from '../test/support/free-port';
import { migrateWithLogins } from '../test/support/roles';
import { createTestTls } from '../test/support/tls';
import { API_NODE_ARGS } from './node-args';
import { quoteBody } from './quote-body';
import { compare, jsonFigures, tableHead, tableRows, type Comparison } from './figures';
import { load } from './load';
import { median, runPairs } from './rounds';
import { end, startBare, startOurs, type Target } from './targets';

/**
 * `npm run bench:quote`: the quote path against a bare Fastify route with one prepared insert per request, in one run
 * on one Postgres (fsync and synchronous_commit on). Both speak plain HTTP on loopback (or TLS, each itself), get
 * the same body and run with the same Node arguments. See docs/operations/speed.md.
 */

const { values: options } = parseArgs({
  options: {
    /** One JSON object instead of a table. */
    json: { type: 'boolean', default: false },
    /** Demo merchant to quote for. M1000002 has three products, as most merchants do; M100001 has nine. */
    merchant: { type: 'string', default: 'M1000002' },
    /** Pairs of rounds for each number of connections. */
    pairs: { type: 'string', default: '15' },
    connections: { type: 'string', default: '1,16,64' },
    /** Both servers end TLS, with one certificate and the same options. */
    tls: { type: 'boolean', default: false },
    /** Quotes over which memory is watched. */
    quotes: { type: 'string', default: '100000' },
    /** Writes a CPU profile of each server into this folder. */
    profile: { type: 'string' },
    /** Arguments for Node, for both servers; by default those that docs/operations/run.md starts the API with. */
    node: { type: 'string', default: API_NODE_ARGS.join(' ') },
  },
});

/** Requests per round, by connections: about a second on two slow cores. */
const REQUESTS: Readonly<Record<string, number>> = { 1: 500, 16: 4_000, 64: 6_000 };
const say = (line: string) => options.json || console.log(line);

async function main(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'pfqs-bench-'));
  const targets: Target[] = [];
  const postgres = await startPostgres({
    dataDir: join(directory, 'postgres'),
    port: await freePort(),
    password: 'bench',
    settings: { shared_buffers: '256MB', max_wal_size: '4GB' },
  });
  try {
    await migrateWithLogins(postgres.url);
    const { partnerId, apiKeys } = await seedDemo(postgres.url, undefined);
    const nodeArgs = options.node.split(' ').filter((argument) => argument !== '');
    if (options.profile !== undefined) nodeArgs.push('--cpu-prof', `--cpu-prof-dir=${options.profile}`);
    const common = {
      databaseUrl: postgres.url,
      directory,
      nodeArgs,
      body: quoteBody(partnerId, options.merchant),
      tls: options.tls ? await createTestTls() : null,
    };
    const ours = await startOurs({ ...common, key: apiKeys.test });
    targets.push(ours);
    const bare = await startBare(common);
    targets.push(bare);

    for (const target of targets) await load({ ...target, connections: 64, requests: 25_000 });
    say(tableHead());
    const comparisons: Comparison[] = [];
    for (const connections of options.connections.split(',').map(Number)) {
      const requests = REQUESTS[connections] ?? 4_000;
      const pairs = Number(options.pairs);
      const comparison = compare(
        connections,
        await runPairs({ bare, ours, postgresPid: postgres.pid, connections, requests, pairs }),
      );
      comparisons.push(comparison);
      say(tableRows(comparison));
    }
    const memory = await memoryOver(ours, Number(options.quotes));
    say(
      `memory over ${options.quotes} quotes: ${memory.before.toFixed(0)} MB in the first quarter, ` +
        `${memory.after.toFixed(0)} MB in the last, ${memory.most.toFixed(0)} MB at most`,
    );
    if (options.json) {
      const rss = {
        rss_growth_mb: Math.round(memory.after - memory.before),
        rss_mb: Math.round(memory.after),
        rss_most_mb: Math.round(memory.most),
      };
      console.log(JSON.stringify({ ...jsonFigures(comparisons), ...rss }));
    }
  } finally {
    await Promise.all(targets.map(end));
    await postgres.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** How often memory is read meanwhile: it goes up and down with every collection, so that two readings alone say little. */
const READINGS = 20;

/** Resident memory in MB while so many quotes are made: medians of the first and of the last quarter of the readings. */
async function memoryOver(target: Target, quotes: number) {
  const readings: number[] = [];
  for (let nth = 0; nth < READINGS; nth += 1) {
    await load({ ...target, connections: 64, requests: Math.ceil(quotes / READINGS) });
    const metrics = await (await fetch(`http://127.0.0.1:${target.internalPort}/metrics`)).text();
    readings.push(Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]) / 2 ** 20);
  }
  const quarter = READINGS / 4;
  return {
    before: median(readings.slice(0, quarter)),
    after: median(readings.slice(-quarter)),
    most: Math.max(...readings),
  };
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
