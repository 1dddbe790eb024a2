/**
 * `npm run test:containers`: production as docker-compose.yml and the handbook have it, in a real container engine. Run by engine.sh, in the network
 * of a partner outside. With `--json` the last line has the figures; `--outputFile=FILE` gets a report in the form of Jest's, for .ci/run.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import { parseArgs } from 'node:util';
import { certificates, monitoring } from './care';
import { guarded, network } from './boundaries';
import {
  kills,
  restartOfTheEngine,
  rollingRestart,
  stops,
  temporalLost,
  temporalUpgrade,
} from './interruptions';
import { kubernetes } from './kubernetes';
import { startOutside } from './partner';
import { Project } from './project';
import { restores } from './restores';
import { firstDay, installs } from './start';
import { newFigures, type Scene } from './scene';

const { values } = parseArgs({
  options: { json: { type: 'boolean' }, outputFile: { type: 'string' }, keep: { type: 'boolean' } },
  strict: false,
});
const steps: readonly [string, (scene: Scene) => Promise<unknown>][] = [
  ['starts from nothing by the commands of the page', installs],
  ['every container is guarded and bounded as the file says', guarded],
  ['answers a quote, delivers to a partner outside, opens an application for a lender', firstDay],
  ['ports are open and closed as the page says', network],
  ['pods of the Helm chart: one is killed, a node is drained, nothing is lost', kubernetes],
  ['a rolling restart to another release and back loses nothing', rollingRestart],
  ['another Temporal takes over', temporalUpgrade],
  ['a Temporal that lost its databases is set up anew', temporalLost],
  ['kill -9 of every container loses nothing', kills],
  ['stops in order', stops],
  ['starts again with the engine', restartOfTheEngine],
  ['certificates are renewed', certificates],
  ['a backup is restored to a moment, and from its dump', restores],
  ['the monitoring sees everything', monitoring],
  [
    'every command of the handbook about containers was run',
    async ({ project }) => {
      const left = project.left();
      if (left.length > 0) throw new Error(`nobody ran:\n${left.join('\n')}`);
    },
  ],
];

async function run(): Promise<boolean> {
  const project = new Project();
  const outside = await startOutside();
  const scene: Scene = {
    project,
    outside,
    credentials: { key: '', serviceKey: '' },
    answered: [],
    figures: newFigures(),
  };
  const results: { title: string; status: 'passed' | 'failed' }[] = [];
  for (const [title, step] of steps) {
    const startedAt = Date.now();
    const error = await step(scene).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const seconds = Math.round((Date.now() - startedAt) / 1_000);
    results.push({ title, status: error === undefined ? 'passed' : 'failed' });
    console.log(`${error === undefined ? '✓' : '✗'} ${title} (${seconds} s)`);
    if (error === undefined) continue;
    console.error(error);
    // What follows needs what came before.
    console.error(
      (await project.try('docker compose ps --all; docker compose logs --tail 15')).out.slice(-12_000),
    );
    if (!values['keep']) break;
  }
  await outside.close();
  for (const [title] of steps.slice(results.length)) results.push({ title, status: 'failed' });
  const passed = results.every(({ status }) => status === 'passed');
  if (typeof values['outputFile'] === 'string') {
    const file = { name: __filename, status: passed ? 'passed' : 'failed', assertionResults: results };
    writeFileSync(values['outputFile'], JSON.stringify({ testResults: [file] }));
  }
  if (passed) rmSync(project.folder, { recursive: true });
  else
    console.error(
      `What the commands printed: commands.log in ${basename(project.folder)} below the temporary folder.`,
    );
  if (values['json']) console.log(JSON.stringify(scene.figures));
  return passed;
}

run().then(
  (passed) => process.exit(passed ? 0 : 1),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
