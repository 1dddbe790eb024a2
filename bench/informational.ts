/**
 * `npm run bench:informational`: 16 endpoints answer with 1xx for ever, at full speed (docs/operations/speed.md). A real sender
 * posts to each of them 100 times a minute, which is what one API key can bring about, and to a quiet partner beside them.
 * Prints the delay of the event loop and the quiet partner's times: with no other endpoint, with 16 that refuse in order (a new
 * connection for each attempt costs a handshake, whatever comes then), and with the 16 that flood, in turns.
 */
import { rmSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { createAuthority, issueCertificate } from '../runtime/certificates/issue';
import { createResolver } from '../outbound/resolve';
import { createSender, type Sender } from '../outbound/sender';
import { endChild, nextMessage, startChild } from './delivery/children';
import { median, percentile } from './rounds';

const ENDPOINTS = 16;
const EVERY_MS = 600;
const QUIET_EVERY_MS = 10;
const TURNS = 3;
const TURN_MS = 10_000;
const HOST = 'hooks.bench.example';
const MOST_LOOP_P99_MS = 50;
const MOST_P95_RATIO = 1.2;

interface Turn {
  readonly loopP99Ms: number;
  readonly quietP95Ms: number;
  /** What the attempts to the 16 came to, and the longest of them in milliseconds. */
  readonly ends: Readonly<Record<string, number>>;
  readonly longestMs: number;
}

/** @param hostile ports to attempt beside the quiet one. */
async function turn(sender: Sender, quiet: number, hostile: readonly number[]): Promise<Turn> {
  const loop = monitorEventLoopDelay({ resolution: 1 });
  const until = performance.now() + TURN_MS;
  const took: number[] = [];
  const ends: Record<string, number> = {};
  let longestMs = 0;
  const post = (port: number) =>
    sender.send({ url: `https://${HOST}:${port}/hook`, headers: { 'webhook-id': 'evt_1' }, body: '{"a":1}' });
  const repeat = async (everyMs: number, work: () => Promise<void>) => {
    while (performance.now() < until) await Promise.all([work(), delay(everyMs)]);
  };
  loop.enable();
  await Promise.all([
    repeat(QUIET_EVERY_MS, async () => {
      const startedAt = performance.now();
      await post(quiet);
      took.push(performance.now() - startedAt);
    }),
    ...hostile.map(async (port, nth) => {
      // Spread over the period, as calls are.
      await delay((EVERY_MS * nth) / hostile.length);
      await repeat(EVERY_MS, async () => {
        const { outcome } = await post(port);
        const end = outcome.kind === 'failed' ? outcome.failure : outcome.kind;
        ends[end] = (ends[end] ?? 0) + 1;
        longestMs = Math.max(longestMs, outcome.durationMs);
      });
    }),
  ]);
  loop.disable();
  const quietP95Ms = percentile(
    took.toSorted((a, b) => a - b),
    0.95,
  );
  return { loopP99Ms: loop.percentile(99) / 1e6, quietP95Ms, ends, longestMs };
}

async function main(): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'bench-informational-'));
  const validity = {
    notBefore: new Date(Date.now() - 86_400_000),
    notAfter: new Date(Date.now() + 86_400_000),
  };
  const authority = await createAuthority('Bench authority', validity);
  const { cert, key } = await issueCertificate(authority, [{ type: 'dns', value: HOST }], validity);
  const files = [join(directory, 'cert.pem'), join(directory, 'key.pem')];
  await writeFile(files[0] ?? '', cert);
  await writeFile(files[1] ?? '', key);
  const start = (kind: string, count: number) =>
    startChild('bench/informational/endpoints.ts', {
      args: [kind, ...files, String(count)],
      logFile: join(directory, `${kind}.log`),
    });
  const children = [start('quiet', 1), start('refuse', ENDPOINTS), start('flood', ENDPOINTS)];
  const [quiet = [], refusing = [], flooding = []] = await Promise.all(
    children.map(async (child) => (await nextMessage<{ ports: number[] }>(child)).ports),
  );
  const sender = createSender({
    allowedCidrs: ['127.0.0.0/8'],
    allowedPorts: [...quiet, ...refusing, ...flooding],
    hosts: new Map([[HOST, ['127.0.0.1']]]),
    resolver: createResolver(),
    ca: authority.cert,
    now: Date.now,
  });
  try {
    const turns: Record<'alone' | 'refusing' | 'flooding', Turn[]> = {
      alone: [],
      refusing: [],
      flooding: [],
    };
    const beside = { alone: [], refusing, flooding };
    await turn(sender, quiet[0] ?? 0, flooding);
    for (let nth = 0; nth < TURNS; nth += 1) {
      for (const name of ['alone', 'refusing', 'flooding'] as const) {
        const one = await turn(sender, quiet[0] ?? 0, beside[name]);
        turns[name].push(one);
        const times = `event loop p99 ${one.loopP99Ms.toFixed(1)} ms, quiet partner p95 ${one.quietP95Ms.toFixed(2)} ms`;
        console.log(name.padEnd(9), times, JSON.stringify(one.ends), `longest ${one.longestMs} ms`);
      }
    }
    const loopP99Ms = median(turns.flooding.map((one) => one.loopP99Ms));
    const ratioTo = (other: readonly Turn[]) =>
      median(turns.flooding.map((one, nth) => one.quietP95Ms / (other[nth]?.quietP95Ms ?? NaN)));
    const ratio = ratioTo(turns.refusing);
    console.log(`event loop p99, flooding: ${loopP99Ms.toFixed(1)} ms (at most ${MOST_LOOP_P99_MS})`);
    console.log(`quiet partner's p95, flooding / refusing: ${ratio.toFixed(2)} (at most ${MOST_P95_RATIO})`);
    console.log(`quiet partner's p95, flooding / alone: ${ratioTo(turns.alone).toFixed(2)}`);
    if (loopP99Ms > MOST_LOOP_P99_MS || ratio > MOST_P95_RATIO) process.exitCode = 1;
  } finally {
    sender.close();
    await Promise.all(children.map(endChild));
    rmSync(directory, { recursive: true });
  }
}

void main();
