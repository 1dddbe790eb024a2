import { seedDemo } from '../dev/seed';
import { createTestTls } from '../testbed/tls';
import { quoteBody, startBare, startOurs, type Target } from './harness/api';
import { runBench } from './harness/bench';
import { withCpu } from './harness/cpu';
import { load, loadOver, openConnections } from './harness/load';
import { say } from '../testbed/say';
import { medianRatio, medians, takeTurns, type Figures } from './harness/rounds';
import { openPostgres } from './harness/stage';

/**
 * `npm run bench:quote`: the quote path against a bare Fastify route with one prepared insert per request, in one run
 * on one Postgres (fsync and synchronous_commit on). Both speak plain HTTP on loopback (or TLS, each itself), get
 * the same body and run with the same Node arguments. See docs/operations/speed.md.
 */
const OPTIONS = {
  /** Pairs of rounds for each number of connections. */
  pairs: 15,
  connections: '1,16,64',
  /** Both servers end TLS, with one certificate and the same options. */
  tls: false,
};

/** Requests per round, by connections: about a second on two slow cores. */
const REQUESTS: Readonly<Record<number, number>> = { 1: 500, 16: 4_000, 64: 6_000 };
const WARM_UP = 25_000;

runBench('quote', OPTIONS, async (bench, options) => {
  const postgres = await openPostgres(bench);
  const { partnerId, apiKeys } = await seedDemo(postgres.url, undefined);
  // It has three products, as most merchants do.
  const body = quoteBody(partnerId, 'M1000002');
  const tls = options.tls ? await createTestTls() : null;
  const shared = { databaseUrl: postgres.url, body, tls };
  const ours = await startOurs(bench, { ...shared, key: apiKeys.test });
  const bare = await startBare(bench, shared);

  say('warming up');
  for (const target of [ours, bare]) await load({ ...target, connections: 64, requests: WARM_UP });
  const figures: Record<string, number> = {};
  const columns: Record<'bare' | 'ours', Record<string, number>> = { bare: {}, ours: {} };
  for (const connections of options.connections.split(',').map(Number)) {
    const requests = REQUESTS[connections] ?? 4_000;
    const round = (target: Target) => measure(target, { postgres: postgres.pid, connections, requests });
    const rounds = await takeTurns(options.pairs, {
      bare: () => round(bare),
      ours: () => round(ours),
    });
    for (const [name, of] of [
      ['throughput', 'per_second'],
      ['p50', 'p50_ms'],
      ['p99', 'p99_ms'],
    ] as const) {
      figures[`${name}_ratio_${connections}`] = medianRatio(rounds.ours, rounds.bare, of);
      say(
        `${name} at ${connections}: ${figures[`${name}_ratio_${connections}`]?.toFixed(2)} of the bare route`,
      );
    }
    for (const name of ['bare', 'ours'] as const)
      for (const [what, value] of Object.entries(medians(rounds[name])))
        columns[name][`${what}_${connections}`] = value;
  }
  return { figures, columns };
});

async function measure(
  target: Target,
  { postgres, connections, requests }: { postgres: number; connections: number; requests: number },
): Promise<Figures> {
  const sockets = await openConnections(target, connections);
  const measured = { processes: { server: target.child.pid, load: process.pid }, postgres: { postgres } };
  const { result, cpu } = await withCpu(measured, requests, () => loadOver(sockets, { ...target, requests }));
  const { failures, ...times } = result;
  if (failures !== 0) throw new Error(`${failures} of ${requests} answers were not 200`);
  return { ...times, ...cpu };
}
