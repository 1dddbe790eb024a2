import { parseArgs } from 'node:util';
import { benchDirectory } from './directory';
import { say } from './report';
import { countSteps } from './delivery/counting';
import { jsonFigures, summarise, table } from './delivery/figures';
import { measureIsolation } from './delivery/isolation';
import { measureOvertake } from './delivery/overtake';
import { runRound, runTurns, WAYS } from './delivery/rounds';
import { setStage } from './delivery/stage';

/**
 * `npm run bench:delivery`: the delivery path against two floors on the same Temporal server, a real one on Postgres:
 * (a) a bare workflow with one regular activity that signs and POSTs, started by a client; (b) ours, from the row's commit
 * to what is recorded; (c) a bare workflow with one local activity and eager start; (d) an activity without a workflow. See docs/operations/speed.md.
 */

const { values: options } = parseArgs({
  options: {
    /** One JSON object on standard output instead of the table. */
    json: { type: 'boolean', default: false },
    /** Rounds of each way, loaded and unloaded. */
    rounds: { type: 'string', default: '5' },
    /** Notifications per loaded round: three to six seconds on two slow cores. */
    count: { type: 'string', default: '400' },
    /** Notifications per unloaded round, one after the other. */
    unloaded: { type: 'string', default: '60' },
    'in-flight': { type: 'string', default: '64' },
    /** Pairs with and without a hanging endpoint; 0 leaves isolation out (NaN). */
    isolation: { type: 'string', default: '5' },
    /** Notifications due to one partner, for the time that another's takes meanwhile; 0 leaves that out. */
    overtake: { type: 'string', default: '5000' },
    /** Pairs without and with them. */
    'overtake-pairs': { type: 'string', default: '5' },
    /** Writes a CPU profile of each worker into this folder. */
    profile: { type: 'string' },
    /** Lists the statements of each way, and how often each delivery takes them, on standard error. */
    statements: { type: 'boolean', default: false },
    /** Arguments for Node, for both workers. */
    node: { type: 'string', default: '' },
  },
});

/** Enough for every endpoint to be known as fast, and for the code to be compiled. */
const WARM_UP = 250;

async function main(): Promise<void> {
  const { directory, remove } = await benchDirectory('bench');
  const nodeArgs = options.node.split(' ').filter((argument) => argument !== '');
  if (options.profile !== undefined) nodeArgs.push('--cpu-prof', `--cpu-prof-dir=${options.profile}`);
  say('starting Temporal on Postgres, our Postgres, 17 endpoints, the worker and the floors');
  const stage = await setStage({ directory, nodeArgs, say });
  try {
    const [rounds, count] = [Number(options.rounds), Number(options.count)];
    say('warming up');
    for (const way of WAYS) {
      const { perSecond } = await runRound(stage, way, { count: WARM_UP, inFlight: 64, restMs: 0 });
      say(`${way}: ${perSecond.toFixed(0)} per second`);
    }
    say('unloaded: one at a time');
    const one = { count: Number(options.unloaded), inFlight: 1, restMs: 20 };
    const unloaded = await runTurns(stage, rounds, one);
    say(`${options['in-flight']} in flight`);
    const many = { count, inFlight: Number(options['in-flight']), restMs: 0 };
    const loaded = await runTurns(stage, rounds, many);
    for (const { regular, ours, local, standalone } of loaded) {
      const perSecond = [regular, ours, local, standalone].map((round) => round.perSecond.toFixed(0));
      say(`(a), (b), (c), (d) per second: ${perSecond.join(', ')}`);
    }
    say('counting history events and statements');
    const tell = options.statements ? say : undefined;
    const steps = {
      regular: await countSteps(stage, 'regular', 100, tell),
      ours: await countSteps(stage, 'ours', 100, tell),
      local: await countSteps(stage, 'local', 100, tell),
      standalone: await countSteps(stage, 'standalone', 100, tell),
    };
    const pairs = Number(options.isolation);
    if (pairs > 0) say('one endpoint hangs, with 500 due to it');
    const isolation = await measureIsolation(stage, { pairs, count: 150, everyMs: 40, due: 500 });
    const due = Number(options.overtake);
    if (due > 0) say(`${due} are due to one partner`);
    const overtake =
      due > 0
        ? await measureOvertake(stage, { pairs: Number(options['overtake-pairs']), due, singles: 30 })
        : null;
    const found = summarise(loaded, unloaded, steps, { isolation, overtake });
    console.log(options.json ? JSON.stringify(jsonFigures(found)) : table(found));
  } finally {
    say('stopping');
    await stage.close();
    await remove();
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
