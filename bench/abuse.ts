import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startPostgres } from '../dev/postgres';
import { seedDemo } from '../dev/seed';
import { freePort } from '../test/support/free-port';
import { migrateWithLogins } from '../test/support/roles';
import { benchDirectory } from './directory';
import { say } from './report';
import { measureEdge, type EdgeFigures } from './abuse/edge';
import { measureTests, type TestFigures } from './abuse/tests';
import { runRound } from './delivery/rounds';
import { setStage } from './delivery/stage';
import { quoteBody } from './quote-body';

/**
 * `npm run bench:abuse`: what an abuser costs everybody else (docs/operations/speed.md). One address that calls with made-up keys, or
 * opens 10,000 connections, beside callers at another; a partner that asks for tests of an endpoint that fails, beside the
 * others' events. With and without, in turn.
 */

const { values: options } = parseArgs({
  options: {
    /** One JSON object on standard output instead of the lines. */
    json: { type: 'boolean', default: false },
    /** Turns of each kind at the edge, and pairs with and without tests. */
    turns: { type: 'string', default: '3' },
    /** Length of a turn at the edge. */
    seconds: { type: 'string', default: '15' },
    /** Parts, of: proxy, direct, tests. */
    parts: { type: 'string', default: 'proxy,direct,tests' },
  },
});

const MOST_P99_RATIO = 1.5;
const MOST_TESTS_RATIO = 1.2;

async function edge(directory: string, way: 'proxy' | 'direct'): Promise<EdgeFigures> {
  const postgres = await startPostgres({
    dataDir: join(directory, `postgres-${way}`),
    port: await freePort(),
    password: 'bench',
    settings: {},
  });
  try {
    await migrateWithLogins(postgres.url);
    const { partnerId, apiKeys } = await seedDemo(postgres.url, undefined);
    return await measureEdge(way, {
      databaseUrl: postgres.url,
      directory,
      key: apiKeys.test,
      body: quoteBody(partnerId, 'M1000002'),
      turns: Number(options.turns),
      turnSeconds: Number(options.seconds),
      say,
    });
  } finally {
    await postgres.stop();
  }
}

async function tests(directory: string): Promise<TestFigures> {
  const stage = await setStage({ directory, nodeArgs: [], say });
  try {
    say('warming up');
    await runRound(stage, 'ours', { count: 250, inFlight: 64, restMs: 0 });
    return await measureTests(stage, Number(options.turns), say);
  } finally {
    await stage.close();
  }
}

async function main(): Promise<void> {
  const { directory, remove } = await benchDirectory('bench');
  const parts = options.parts.split(',');
  const figures: Record<string, number> = {};
  const put = (name: string, found: object) => {
    for (const [figure, value] of Object.entries(found) as [string, number][])
      figures[`${name}_${figure.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`] =
        Math.round(value * 1_000) / 1_000;
  };
  let kept = true;
  try {
    for (const way of ['proxy', 'direct'] as const) {
      if (!parts.includes(way)) continue;
      const found = await edge(directory, way);
      put(way, found);
      kept &&= found.keysRatio <= MOST_P99_RATIO && found.idleRatio <= MOST_P99_RATIO;
      kept &&= found.failures === 0 && found.healthFailures === 0;
    }
    if (parts.includes('tests')) {
      const found = await tests(directory);
      put('tests', found);
      kept &&= found.ratio <= MOST_TESTS_RATIO;
    }
  } finally {
    await remove();
  }
  if (options.json) console.log(JSON.stringify(figures));
  else for (const [name, value] of Object.entries(figures)) console.log(`${name.padEnd(28)} ${value}`);
  if (!kept) process.exitCode = 1;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
