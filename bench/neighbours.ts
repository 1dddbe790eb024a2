import { seedDemo } from '../dev/seed';
import { runBench } from './harness/bench';
import { say } from '../testbed/say';
import type { Figures } from './harness/rounds';
import { openPostgres, openStage } from './harness/stage';
import { deliveryParts } from './neighbours/deliveries';
import { edgeParts } from './neighbours/edge';
import { pagesPart } from './neighbours/pages';
import { measurePart, type Part } from './neighbours/part';

/**
 * `npm run bench:neighbours`: what one partner or stranger costs everybody else. Quiet partners are measured without and beside
 * each kind of neighbour, in turn; a ratio is the median of the pairs' ratios, beside / without. See docs/operations/speed.md.
 */
const OPTIONS = {
  /** Kinds of neighbours. `keys` and `idle` are measured through HAProxy and straight to the API. */
  parts: 'keys,idle,hanging,flood,tests,backlog,late,pages',
  pairs: 3,
  /** Length of one measurement. */
  seconds: 15,
  /** Share of the full sizes; 0.01 for a try, whose figures say nothing. */
  size: 1,
};

/** Full sizes. */
const IDLE_CONNECTIONS = 10_000;
const DUE = 5_000;
const ROWS = 1_000_000;

/** What may not come of each kind: figures of the quiet ones beside it, and of itself. */
const EDGE = { p99_ratio: 1.5, failures: 0, health_failures: 0 };
const BOUNDS: Readonly<Record<string, Figures>> = {
  keys_proxy: EDGE,
  keys_direct: EDGE,
  idle_proxy: EDGE,
  idle_direct: EDGE,
  hanging: { p95_ratio: 1.2 },
  flood: { p95_ratio: 1.2, loop_p99_ms: 50 },
  tests: { p95_ratio: 1.2 },
  backlog: { worst_ms: 1_000 },
  late: { worst_ms: 1_000 },
  pages: { p95_ratio: 1.2, page_p99_ms: 50 },
};

runBench('neighbours', OPTIONS, async (bench, { parts, pairs, seconds, size }) => {
  const wanted = parts.split(',');
  const known = OPTIONS.parts.split(',');
  const unknown = wanted.find((name) => !known.includes(name));
  if (unknown !== undefined) throw new Error(`there is no part ${unknown}, only ${OPTIONS.parts}`);
  const any = (...names: string[]) => names.some((name) => wanted.includes(name));
  const sized = (full: number) => Math.ceil(full * size);

  const figures: Record<string, number> = {};
  const bounds: Record<string, number> = {};
  const columns: Record<string, Figures> = {};
  const measure = async (all: Readonly<Record<string, Part>>) => {
    for (const [name, part] of Object.entries(all)) {
      if (!any(name, name.replace(/_(proxy|direct)$/, ''))) continue;
      say(`${name}: measuring`);
      const { without, beside, ratios } = await measurePart(part, pairs);
      columns[`${name}_without`] = without;
      columns[name] = beside;
      for (const [bounded, most] of Object.entries(BOUNDS[name] ?? {})) {
        bounds[`${name}_${bounded}`] = most;
        figures[`${name}_${bounded}`] = ratios[bounded] ?? beside[bounded] ?? Number.NaN;
      }
    }
  };

  const postgres = await openPostgres(bench);
  if (any('keys', 'idle')) {
    const demo = await seedDemo(postgres.url, undefined);
    const options = { postgres, demo, seconds, idle: sized(IDLE_CONNECTIONS) };
    for (const way of ['proxy', 'direct'] as const) await measure(await edgeParts(bench, way, options));
  }
  if (any('hanging', 'flood', 'tests', 'backlog', 'late', 'pages')) {
    const stage = await openStage(bench, { postgres, hostile: 16 });
    await measure(deliveryParts(stage, { seconds, due: sized(DUE) }));
    if (any('pages')) await measure({ pages: await pagesPart(bench, stage, { rows: sized(ROWS), seconds }) });
  }
  return { figures, bounds, columns };
});
