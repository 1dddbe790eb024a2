import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { startHaProxy } from '../../test/support/haproxy';
import { startApiProcess } from '../../test/support/api-process';
import { freePort } from '../../test/support/free-port';
import { nextMessage, startChild } from '../delivery/children';
import { processCpuMs } from '../cpu';
import { median } from '../rounds';
import { callQuietly, type QuietCalls } from './quiet';

/** What strangers at one address cost callers at others. Times in milliseconds; ratios are medians over pairs. */
export interface EdgeFigures {
  readonly aloneP99Ms: number;
  readonly keysP99Ms: number;
  readonly idleP99Ms: number;
  readonly keysRatio: number;
  readonly idleRatio: number;
  /** CPU that API and proxy spent, in milliseconds a second: it does not depend on what else the machine does. */
  readonly aloneCpuMs: number;
  readonly keysCpuMs: number;
  readonly idleCpuMs: number;
  /** Calls with a valid key that were not answered 200, in all turns. */
  readonly failures: number;
  /** Slowest answer of health, and answers other than 200. */
  readonly healthWorstMs: number;
  readonly healthFailures: number;
}

export interface EdgeOptions {
  readonly databaseUrl: string;
  readonly directory: string;
  readonly key: string;
  readonly body: string;
  readonly turns: number;
  readonly turnSeconds: number;
  readonly say: (line: string) => void;
}

const EVERY_MS = 10;

interface Turn extends QuietCalls {
  readonly cpu: number;
}

/** @param way through deploy/proxy/haproxy.cfg, or straight to the API, which ends TLS itself. */
export async function measureEdge(way: 'proxy' | 'direct', options: EdgeOptions): Promise<EdgeFigures> {
  const { databaseUrl, directory, key, body, turns, turnSeconds, say } = options;
  const proxied = { TLS_CERT_FILE: '', TLS_KEY_FILE: '', TRUSTED_PROXIES: '127.0.0.1' };
  const api = await startApiProcess({
    databaseUrl,
    environment: { KEYLESS_CALLS_PER_MINUTE: '300', ...(way === 'proxy' && proxied) },
  });
  const nobody = { port: await freePort(), internalPort: await freePort() };
  const proxy = way === 'proxy' ? await startHaProxy([api, nobody]) : null;
  try {
    for (let tries = 0; proxy !== null && !(await proxy.up()).includes('api-1'); tries += 1) {
      if (tries === 300) throw new Error(`The proxy sees no API that is ready:\n${api.output()}`);
      await delay(100);
    }
    const { ca } = proxy ?? api;
    const port = proxy === null ? api.port : Number(new URL(proxy.url).port);
    const caFile = join(directory, `${way}-ca.pem`);
    writeFileSync(caFile, ca);
    const health = [
      `http://127.0.0.1:${api.internalPort}/health`,
      ...(proxy === null ? [] : [proxy.healthUrl]),
    ];
    const health0 = { worstMs: 0, failures: 0 };
    const quietly = (durationMs: number) =>
      callQuietly({ port, ca, localAddress: '127.0.0.3', key, body, everyMs: EVERY_MS, durationMs });
    await quietly(5_000);

    const cpuMs = () => processCpuMs(api.child.pid ?? 0) + (proxy === null ? 0 : processCpuMs(proxy.pid));
    let stranger = 2;
    const turn = async (kind: 'alone' | 'keys' | 'idle'): Promise<Turn> => {
      // Each time another address: the last one is known.
      stranger += 2;
      const attacker =
        kind === 'alone'
          ? null
          : startChild('bench/abuse/attacker.ts', {
              args: [kind, String(port), caFile, `127.0.0.${stranger}`, String(turnSeconds + 3)],
              logFile: join(directory, 'attacker.log'),
            });
      if (attacker !== null) await nextMessage(attacker);
      const told = attacker && nextMessage<Record<string, number>>(attacker);
      let measuring = true;
      const watching = (async () => {
        while (measuring) {
          for (const url of health) {
            const askedAt = performance.now();
            const ok = await fetch(url).then(
              (answer) => answer.ok,
              () => false,
            );
            if (!ok) health0.failures += 1;
            health0.worstMs = Math.max(health0.worstMs, performance.now() - askedAt);
          }
          await delay(200);
        }
      })();
      const cpuBefore = cpuMs();
      const quiet = await quietly(turnSeconds * 1_000);
      const cpu = (cpuMs() - cpuBefore) / turnSeconds;
      measuring = false;
      await watching;
      say(
        `${way} ${kind}: p50 ${quiet.p50Ms.toFixed(2)}, p99 ${quiet.p99Ms.toFixed(2)} ms, ${quiet.failures} failed, ${quiet.late} late, CPU ${cpu.toFixed(0)} ms a second ${JSON.stringify((await told) ?? {})}`,
      );
      return { ...quiet, cpu };
    };
    const found: Record<'alone' | 'keys' | 'idle', Turn[]> = { alone: [], keys: [], idle: [] };
    for (let nth = 0; nth < turns; nth += 1)
      for (const kind of ['alone', 'keys', 'idle'] as const) found[kind].push(await turn(kind));
    const cpuOf = (kind: keyof typeof found) => median(found[kind].map(({ cpu }) => cpu));
    const p99 = (kind: keyof typeof found) => median(found[kind].map((one) => one.p99Ms));
    const ratio = (kind: keyof typeof found) =>
      median(found[kind].map((one, nth) => one.p99Ms / (found.alone[nth]?.p99Ms ?? NaN)));
    return {
      aloneP99Ms: p99('alone'),
      keysP99Ms: p99('keys'),
      idleP99Ms: p99('idle'),
      keysRatio: ratio('keys'),
      idleRatio: ratio('idle'),
      aloneCpuMs: cpuOf('alone'),
      keysCpuMs: cpuOf('keys'),
      idleCpuMs: cpuOf('idle'),
      failures: Object.values(found)
        .flat()
        .reduce((sum, { failures }) => sum + failures, 0),
      healthWorstMs: health0.worstMs,
      healthFailures: health0.failures,
    };
  } finally {
    await proxy?.close();
    await api.close();
  }
}
