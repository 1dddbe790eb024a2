import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RunningPostgres } from '../../dev/postgres';
import type { DemoData } from '../../dev/stack';
import { startHaProxy } from '../../testbed/haproxy';
import { answersOk } from '../../testbed/http-call';
import { createTestTls } from '../../testbed/tls';
import { loopP99Ms, quoteBody, startOurs } from '../harness/api';
import { pause, type Bench } from '../harness/bench';
import { nextMessage, startChild } from '../harness/children';
import { loadOver, openConnections } from '../harness/load';
import { say } from '../../testbed/say';
import type { Part, Trouble } from './part';

/** Of the quiet callers. */
const ADDRESS = '127.0.0.3';
const CONNECTIONS = 16;
const EVERY_MS = 10;
/** A stranger lasts for longer than a measurement. */
const MORE_SECONDS = 5;

export interface EdgeOptions {
  readonly postgres: RunningPostgres;
  readonly demo: DemoData;
  readonly seconds: number;
  readonly idle: number;
}

/**
 * Strangers at one address, beside callers with a valid key at another.
 * @param way through deploy/proxy/haproxy.cfg, or straight to the API, which ends TLS itself.
 */
export async function edgeParts(
  bench: Bench,
  way: 'proxy' | 'direct',
  { postgres, demo, seconds, idle }: EdgeOptions,
) {
  const api = await startOurs(bench, {
    databaseUrl: postgres.url,
    body: quoteBody(demo.partnerId, 'M1000002'),
    key: demo.apiKeys.test,
    tls: way === 'direct' ? await createTestTls() : null,
  });
  const healthUrls = [`http://127.0.0.1:${api.internalPort}/health`];
  let edge = { port: api.port, ca: api.ca ?? '' };
  if (way === 'proxy') {
    const proxy = await startHaProxy(api);
    bench.onEnd(() => proxy.close());
    edge = { port: Number(new URL(proxy.url).port), ca: proxy.ca };
    healthUrls.push(proxy.healthUrl);
  }
  const caFile = join(bench.directory, `${way}-ca.pem`);
  writeFileSync(caFile, edge.ca);

  const quiet = async () => {
    await loopP99Ms(api.internalPort);
    const watch = watchHealth(healthUrls);
    const sockets = await openConnections(edge, CONNECTIONS, ADDRESS);
    const requests = (seconds * 1_000) / EVERY_MS;
    const calls = await loadOver(sockets, {
      headers: { Authorization: api.headers['Authorization'] ?? '' },
      body: api.body,
      requests,
      everyMs: EVERY_MS,
    });
    const { per_second: _, ...times } = calls;
    return { ...times, ...(await watch()), loop_p99_ms: await loopP99Ms(api.internalPort) };
  };

  let stranger = 3;
  const strange = (kind: 'keys' | 'idle', connections: number): Trouble => {
    return async () => {
      // Another address each time, as the last one is limited for a while.
      stranger += 1;
      const wanted = [kind, edge.port, caFile, `127.0.0.${stranger}`, seconds + MORE_SECONDS, connections];
      const child = startChild(bench, 'bench/neighbours/stranger.ts', { args: wanted.map(String) });
      await nextMessage(child);
      const seen = nextMessage<Record<string, number>>(child);
      return async () => {
        say(`${way} ${kind}: the stranger saw ${JSON.stringify(await seen)}`);
        return {};
      };
    };
  };
  return {
    [`keys_${way}`]: { quiet, trouble: strange('keys', 64) },
    [`idle_${way}`]: { quiet, trouble: strange('idle', idle) },
  } satisfies Record<string, Part>;
}

/** Asks for health all the time. @returns what ends that, and reports the slowest answer and how many were not 200. */
function watchHealth(urls: readonly string[]) {
  let over = false;
  let [worstMs, failures] = [0, 0];
  const watching = (async () => {
    while (!over) {
      for (const url of urls) {
        const askedAt = performance.now();
        if (!(await answersOk(url))) failures += 1;
        worstMs = Math.max(worstMs, performance.now() - askedAt);
      }
      await pause(200);
    }
  })();
  return async () => {
    over = true;
    await watching;
    return { health_worst_ms: worstMs, health_failures: failures };
  };
}
