import { availableParallelism } from 'node:os';
import { runBench } from './harness/bench';
import { say } from '../testbed/say';
import type { Figures } from './harness/rounds';
import { openGround, SETTINGS } from './harness/stage';
import { measureCell, openField, withWorkers, type Cell, type MeasuredCell } from './many/deliveries';
import { measureQuotes } from './many/quotes';

/**
 * `npm run bench:many`: deliveries with several workers, and quotes with several API processes. For each number of workers and
 * endpoints a backlog is drained, and then changes are stored at each rate. Temporal has the shards and sessions of deploy/. See
 * docs/operations/speed.md.
 */
const OPTIONS = {
  workers: '1,4,8',
  endpoints: '16,64,1024',
  /** Changes a second. Empty: the backlog only. */
  rates: '50,200',
  /** Changes of the backlog. */
  count: 2_000,
  /** Length of a steady rate. */
  seconds: 8,
  /** Seconds after which what has not arrived is lost. */
  limit: 60,
  /** Seconds after the start of the bench from which no cell begins, that of the quotes neither. 0: all cells. */
  budget: 0,
  /** API processes. 0: no quotes. */
  apis: '1,2',
  /** Processes that store changes, and processes of receivers. 0: one for each four cores. */
  feeders: 0,
  receivers: 0,
  shards: 512,
  /** Temporal's sessions of its history database. */
  connections: 20,
};

/** Each worker has compiled its code, and met the first endpoints. */
const WARM_UP_EACH = 600;
const WARM_ENDPOINTS = 16;
/** Of each Postgres, for 16 workers. */
const SESSIONS = 400;

const beganMs = performance.now();
const numbers = (list: string) => list.split(',').filter(Boolean).map(Number);

runBench('many', OPTIONS, async (bench, options) => {
  const perFourCores = Math.ceil(availableParallelism() / 4);
  const [feeders, receivers] = [options.feeders || perFourCores, options.receivers || perFourCores];
  const endpoints = numbers(options.endpoints);
  const groups = Array.from({ length: receivers }, (_, group) =>
    Array.from(
      { length: Math.ceil(Math.max(...endpoints) / receivers) },
      (_, at) => `r${group + 1}-${at + 1}`,
    ),
  );
  const ground = await openGround(bench, groups, {
    settings: { ...SETTINGS, max_connections: SESSIONS },
    temporal: { shards: options.shards, connections: options.connections },
  });
  say(`${endpoints.join(', ')} endpoints; ${feeders} feeders, ${receivers} processes of receivers`);
  const field = await openField(bench, ground, feeders);

  const isOver = () => options.budget > 0 && performance.now() - beganMs > options.budget * 1_000;
  const cells: MeasuredCell[] = [];
  const columns: Record<string, Figures> = {};
  for (const count of numbers(options.workers)) {
    if (isOver()) break;
    await withWorkers(field, count, async (workers) => {
      const warm = { endpoints: Math.min(WARM_ENDPOINTS, ...endpoints), rate: null };
      await measureCell(field, workers, warm, { ...options, count: WARM_UP_EACH * count });
      for (const wanted of endpoints)
        for (const rate of [null, ...numbers(options.rates)]) {
          if (isOver()) return;
          const { cell, beside } = await measureCell(field, workers, { endpoints: wanted, rate }, options);
          cells.push(cell);
          const { workers: _, endpoints: __, rate: ___, ...figures } = cell;
          const loop_share = beside.loopShare;
          columns[nameOf(cell)] = { ...figures, loop_share, ...beside.cpu };
          say(`${nameOf(cell)}: ${shown({ ...figures, loop_share })}; CPU ms: ${shown(beside.cpu)}`);
          say(`${nameOf(cell)}: paths ${beside.paths}; sessions waited for: ${beside.waits}`);
        }
    });
  }
  if (isOver()) say('the time is over: the other cells are left out');
  const quotes = await measureQuotes(bench, ground.postgres.url, {
    processes: isOver() ? [] : numbers(options.apis),
    seconds: options.seconds / 2,
  });
  for (const { processes, ...figures } of quotes) columns[`quotes, ${processes} processes`] = figures;
  return { figures: {}, columns, json: { cells, quotes } };
});

const nameOf = ({ workers, endpoints, rate }: Cell) =>
  `${workers} workers, ${endpoints} endpoints, ${rate === null ? 'backlog' : `${rate} a second`}`;

const shown = (figures: Figures) =>
  Object.entries(figures)
    .map(([name, value]) => `${name} ${Number(value.toFixed(value < 10 ? 2 : 1))}`)
    .join(', ');
