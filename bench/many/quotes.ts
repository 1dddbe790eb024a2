import type { ChildProcess } from 'node:child_process';
import { seedDemo } from '../../dev/seed';
import { quoteBody, startOurs, type Target } from '../harness/api';
import type { Bench } from '../harness/bench';
import { nextMessage, startChild } from '../harness/children';
import { say } from '../../testbed/say';
import { figure, type Figures } from '../harness/rounds';

const CONNECTIONS = 64;
const WARM_UP = 6_000;

interface QuotesCell {
  readonly processes: number;
  readonly per_second: number;
  readonly p99_ms: number;
}

/** Quotes a second of some API processes, each of which is asked by a load process of its own. */
export async function measureQuotes(
  bench: Bench,
  databaseUrl: string,
  { processes, seconds }: { readonly processes: readonly number[]; readonly seconds: number },
): Promise<QuotesCell[]> {
  const most = Math.max(0, ...processes);
  if (most === 0) return [];
  say(`quotes: starting ${most} API processes`);
  const { partnerId, apiKeys } = await seedDemo(databaseUrl, undefined);
  const shared = { databaseUrl, body: quoteBody(partnerId, 'M1000002'), key: apiKeys.test };
  const pairs = await Promise.all(
    Array.from({ length: most }, async () => {
      const api = await startOurs(bench, shared);
      const asker = startChild(bench, 'bench/many/asker.ts');
      await nextMessage(asker);
      return { api, asker };
    }),
  );
  // One after the other, so that each shows what it answers alone.
  let perSecond = Number.NaN;
  for (const pair of pairs) perSecond = figure(await ask(pair, WARM_UP), 'per_second');
  const cells: QuotesCell[] = [];
  for (const count of processes) {
    const requests = Math.ceil(perSecond * seconds);
    const all = await Promise.all(pairs.slice(0, count).map((pair) => ask(pair, requests)));
    const cell = {
      processes: count,
      per_second: all.reduce((sum, one) => sum + figure(one, 'per_second'), 0),
      p99_ms: Math.max(...all.map((one) => figure(one, 'p99_ms'))),
    };
    say(
      `quotes: ${count} processes, ${cell.per_second.toFixed(0)} a second, p99 ${cell.p99_ms.toFixed(1)} ms`,
    );
    cells.push(cell);
  }
  return cells;
}

async function ask({ api, asker }: { api: Target; asker: ChildProcess }, requests: number): Promise<Figures> {
  const { port, ca, headers, body } = api;
  const answer = nextMessage<Figures>(asker);
  asker.send({ port, ca, headers, body, connections: CONNECTIONS, requests });
  const figures = await answer;
  if (figure(figures, 'failures') !== 0) throw new Error(`${figures['failures']} quotes failed`);
  return figures;
}
