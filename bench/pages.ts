import { parseArgs } from 'node:util';
import { issueKey } from '../db/keys/api-key-changes';
import { benchDirectory } from './directory';
import { printFigures } from './report';
import { postgresCpuMs, processCpuMs } from './cpu';
import { storeChange } from './delivery/feed';
import { monotonicMs } from './delivery/monotonic';
import { pause, settled } from './delivery/rounds';
import { setStage, type Stage } from './delivery/stage';
import { storePast } from './pages/past';
import { pageThrough } from './pages/reader';
import { percentile } from './rounds';
import { end, startOurs } from './targets';

/**
 * `npm run bench:pages`: eight clients of one partner page through all that it was sent, each with a key of its own at the rate
 * that the limit allows it, while deliveries go on. Then the same as fast as they can, for information. Deliveries
 * and an API process on one Postgres, a real Temporal server on another.
 */

const { values: options } = parseArgs({
  options: {
    /** One JSON object on standard output instead of lines. */
    json: { type: 'boolean', default: false },
    /** Notifications that the partner has been sent before, over four months. */
    rows: { type: 'string', default: '100000' },
    clients: { type: 'string', default: '8' },
    /** Pairs of rounds, without and with the clients; their order changes. */
    pairs: { type: 'string', default: '3' },
    /** Deliveries of a round, one every 100 ms. */
    count: { type: 'string', default: '150' },
  },
});

const DELIVERY_EVERY_MS = 100;
/** Of the service: requests per minute and key. */
const LIMIT_PER_MINUTE = 100;
/** Pages without deliveries, for what one costs. */
const ALONE_MS = 5_000;
const say = (line: string) => console.error(line);

/** Milliseconds from commit to arrival of each delivery. */
async function deliver(stage: Stage, count: number): Promise<number[]> {
  const { arrivals } = stage.receivers;
  arrivals.clear();
  stage.receivers.onArrival = () => undefined;
  const startedAt = monotonicMs();
  const moments = await Promise.all(
    Array.from({ length: count }, async (_, at) => {
      await pause(startedAt + at * DELIVERY_EVERY_MS - monotonicMs());
      return storeChange(stage.database, stage.partners[at % stage.partners.length] ?? '');
    }),
  );
  while (!moments.every(([eventId]) => arrivals.has(eventId))) await pause(5);
  await settled(stage);
  return moments.map(([eventId, committedAt]) => (arrivals.get(eventId) ?? Number.NaN) - committedAt);
}

const at = (times: readonly number[], share: number) =>
  percentile(
    times.toSorted((a, b) => a - b),
    share,
  );

async function main(): Promise<void> {
  const { directory, remove } = await benchDirectory('pages');
  const stage = await setStage({ directory, nodeArgs: [], say });
  try {
    const { partnerId } = stage.slow;
    const [rows, count, clients] = [options.rows, options.count, options.clients].map(Number) as [
      number,
      number,
      number,
    ];
    say(`storing ${rows} notifications`);
    await storePast(stage.database, partnerId, rows);
    const { key } = await stage.database.db.transaction((tx) =>
      issueKey(tx, { partnerId, environment: 'live', expiresInSeconds: null }),
    );
    const api = await startOurs({ databaseUrl: stage.postgres.url, directory, nodeArgs: [], body: '', key });
    try {
      const read = (everyMs: number, until: Promise<unknown>) =>
        pageThrough({ port: api.port, headers: api.headers, clients, everyMs }, until);
      say('warming up');
      await read(0, deliver(stage, 100));
      const without: number[] = [];
      const withClients: number[] = [];
      const pages: number[] = [];
      for (let pair = 0; pair < Number(options.pairs); pair += 1) {
        const quiet = async () => without.push(...(await deliver(stage, count)));
        const busy = async () => {
          const delivered = deliver(stage, count);
          pages.push(...(await read(60_000 / LIMIT_PER_MINUTE, delivered)));
          withClients.push(...(await delivered));
        };
        for (const round of pair % 2 === 0 ? [quiet, busy] : [busy, quiet]) await round();
        say(`pair ${pair + 1} of ${options.pairs}`);
      }
      const flatOut = deliver(stage, count);
      const flatPages = await read(0, flatOut);
      const flatTimes = await flatOut;
      const cpu = async () => [processCpuMs(api.child.pid ?? 0), await postgresCpuMs(stage.postgres.pid)];
      const cpuBefore = await cpu();
      const alone = (await read(0, pause(ALONE_MS))).length;
      const [apiCpuMs = NaN, postgresMs = NaN] = (await cpu()).map(
        (ms, nth) => (ms - (cpuBefore[nth] ?? 0)) / alone,
      );
      const moved = at(withClients, 0.95) / at(without, 0.95) - 1;
      const seconds = (count * DELIVERY_EVERY_MS) / 1_000;
      const figures = {
        rows,
        clients,
        pages: pages.length,
        pages_p50_ms: at(pages, 0.5),
        pages_p99_ms: at(pages, 0.99),
        delivery_p95_ms: at(without, 0.95),
        delivery_p95_with_pages_ms: at(withClients, 0.95),
        delivery_p95_moved_percent: moved * 100,
        page_cpu_ms_api: apiCpuMs,
        page_cpu_ms_postgres: postgresMs,
        flat_out_pages_per_second: flatPages.length / seconds,
        flat_out_pages_p99_ms: at(flatPages, 0.99),
        flat_out_delivery_p95_ms: at(flatTimes, 0.95),
      };
      printFigures(figures, options.json, 1);
    } finally {
      await end(api);
    }
  } finally {
    await stage.close();
    await remove();
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
