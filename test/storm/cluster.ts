/**
 * `npm run storm:cluster`: the whole cluster of deploy/cluster on this machine, in namespaces of its own, and everything in it killed,
 * frozen or cut off in turn under load (docs/operations/cluster.md). About 15 minutes; `--short`, 5 minutes: a leader, a Temporal host twice,
 * a worker, a release. Linux, root; `npm run setup:test` installs what it needs. Nothing is left behind.
 *
 * `--json`: the last line is one object (cluster/verdict.ts). Exit code 1 when an invariant is broken.
 */
import { cpSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { say } from '../../testbed/say';
import { failures } from './finding';
import { reportText } from './findings';
import { random, shuffled } from '../support/random';
import { inNamespaces } from '../../scripts/cluster/inside';
import { LONG, SHORT } from './cluster/blows';
import { runStorm } from './cluster/run';
import { openClusterScene } from './cluster/scene';
import { judge } from './cluster/verdict';

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    /** One JSON object as the last line. */
    json: { type: 'boolean', default: false },
    /** What the system suite runs. */
    short: { type: 'boolean', default: false },
    /** Only blows whose description contains this. */
    only: { type: 'string', default: '' },
    /** Another order of the blows for each number. Without it, they come as in the file. */
    seed: { type: 'string' },
    /** A folder that gets what every process has printed. */
    logs: { type: 'string' },
  },
});

async function storm(directory: string): Promise<number> {
  const next = options.seed === undefined ? () => 0 : random(Number(options.seed));
  const wanted = (options.short ? SHORT : LONG).filter(({ what }) => what.includes(options.only));
  const blows = shuffled(wanted, next);
  if (blows.length === 0) throw new Error(`--only: no blow is called ${options.only}`);
  try {
    const scene = await openClusterScene({ directory, say });
    const { verdict, findings } = await judge(scene, await runStorm(scene, blows, say));
    console.error(reportText(findings));
    const lines = Object.entries(verdict).map(([name, value]) => `${name}: ${JSON.stringify(value)}`);
    console.log(options.json ? JSON.stringify(verdict) : lines.join('\n'));
    await scene.close();
    return failures(findings).length > 0 ? 1 : 0;
  } finally {
    const filter = (path: string) => path === directory || path.endsWith('.log');
    if (options.logs !== undefined) cpSync(directory, options.logs, { recursive: true, filter });
  }
}

inNamespaces(positionals[0], storm);
