/**
 * `npm run rehearse:upgrade -- --json`: upgrades a running Temporal, one minor version after the other, under load and with
 * ladders of three days in flight (docs/operations/upgrade.md, "Upgrading Temporal"): real servers on Postgres as deploy/temporal
 * has them, an API, two workers. It takes about six minutes, and builds with Go what servers are missing.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { runLenders, type Promised } from '../test/storm/lenders';
import { inState, setLadders, speedUp } from './upgrade/ladders';
import { openUpgradeScene, type UpgradeScene } from './upgrade/scene';
import { judge } from './upgrade/verdict';

const { values: options } = parseArgs({
  options: {
    /** One JSON object on standard output instead of text. */
    json: { type: 'boolean', default: false },
    /** In this order. 1.31.5 cannot be built: the module proxy lacks one of its dependencies. */
    versions: { type: 'string', default: '1.29.1,1.30.9,1.31.2,1.32.2' },
    /** Lenders at work, each opening an application about every second. */
    lenders: { type: 'string', default: '3' },
    /** Seconds of load between two steps. */
    settle: { type: 'string', default: '15' },
  },
});

/** What a server of before 1.32 was set to: its defaults of today, and fairness, which nothing used. */
const BEFORE = [
  'matching.useNewMatcher',
  'matching.enableFairness',
  'system.enableActivityEagerExecution',
  'system.enableEagerWorkflowStart',
];
const END_MS = 180_000;

interface Step {
  readonly version: string;
  /** Both databases, while the old server works. */
  readonly schemaSeconds: number;
  /** From SIGTERM to the old server until the new one answers. */
  readonly restartSeconds: number;
  /** Longest time without a delivery around it. */
  readonly pauseSeconds: number;
}

const startedAt = performance.now();
const seconds = (from: number) => Math.round((performance.now() - from) / 100) / 10;
const say = (text: string) => console.error(`${seconds(startedAt).toFixed(0)} s: ${text}`);

async function main(): Promise<number> {
  const versions = options.versions.split(',');
  const last = versions.at(-1);
  const ours = await readFile(join(__dirname, '../deploy/temporal/dynamic-config.yaml'), 'utf8');
  const older = `${BEFORE.map((name) => `${name}:\n  - value: true\n`).join('')}${ours}`;
  const settleMs = Number(options.settle) * 1_000;
  const scene = await openUpgradeScene({ versions, dynamicConfig: older, say });
  try {
    const waiting = await setLadders(scene);
    say(
      `${waiting.ladders.length} ladders at six steps, ${waiting.paused.length} paused, ${waiting.held.length} held`,
    );
    const load = startLoad(scene);
    const steps: Step[] = [];
    await sleep(settleMs);
    for (const version of versions.slice(1)) {
      // What is a default now leaves the configuration with the last version.
      steps.push(await upgrade(scene, version, { settleMs, older: version !== last }));
      say(`${version}: ${JSON.stringify(steps.at(-1))}`);
    }
    const promised = await load.stop();
    const left =
      (await inState(scene, waiting.ladders, 'started')) + (await inState(scene, waiting.paused, 'started'));
    const held = await inState(scene, waiting.held, 'held');
    say(`${left} ladders and ${held} held are still there; their receivers answer now`);
    await speedUp(scene, waiting);
    await ended(scene);
    const { faults, ...verdict } = await judge(scene, promised);
    for (const fault of faults) console.error(fault);
    const found = { versions, ladders: left, held, steps, ...verdict };
    console.log(options.json ? JSON.stringify(found) : text(found));
    return faults.length === 0 ? 0 : 1;
  } finally {
    say('stopping');
    await scene.close();
  }
}

/** New notifications all the time: applications and their lives through the internal listener, tests through the public one. */
function startLoad(scene: UpgradeScene) {
  let stopped = false;
  const promised: Promised[] = [];
  const lend = async () => {
    for (let round = 0; !stopped; round += 1) {
      const applications = Number(options.lenders);
      const prefix = `U${String(round).padStart(3, '0')}`;
      promised.push(...(await runLenders(scene, { applications, atOnce: applications, prefix })));
      await sleep(500);
    }
  };
  const test = async () => {
    const call = { internal: false, path: '/v1/notifications/test', key: scene.testerKey, body: null };
    // Under the limit of the month.
    for (let tests = 0; !stopped && tests < 90; tests += 1) {
      const answer = await scene.ask(call);
      if (answer === null || answer.status > 202)
        throw new Error(`a test was answered ${JSON.stringify(answer)}`);
      await sleep(2_000);
    }
  };
  const running = Promise.all([lend(), test()]);
  // Looked at when it is stopped.
  running.catch(() => undefined);
  return {
    async stop() {
      stopped = true;
      await running;
      return promised;
    },
  };
}

/** Schema first, while the old server works and goes on working; then the server. */
async function upgrade(
  scene: UpgradeScene,
  version: string,
  { settleMs, older }: { settleMs: number; older: boolean },
): Promise<Step> {
  const { temporal } = scene;
  const schemaAt = performance.now();
  await temporal.updateSchema(version);
  const schemaSeconds = seconds(schemaAt);
  await sleep(settleMs);
  const restartAt = performance.now();
  await temporal.stop();
  temporal.start(version, older ? scene.olderConfig : undefined);
  await temporal.ready();
  const restartSeconds = seconds(restartAt);
  await sleep(settleMs);
  return { version, schemaSeconds, restartSeconds, pauseSeconds: pauseSince(scene, restartAt) };
}

/** The longest time between two deliveries since a moment; in seconds. */
function pauseSince({ receivers }: UpgradeScene, sinceMs: number): number {
  const times = receivers.well.received.map(({ atMs }) => atMs).filter((atMs) => atMs >= sinceMs);
  const gaps = [...times, performance.now()].map((atMs, at) => atMs - (times[at - 1] ?? sinceMs));
  return Math.round(Math.max(...gaps) / 100) / 10;
}

async function ended({ database, temporal }: UpgradeScene): Promise<void> {
  const deadline = performance.now() + END_MS;
  for (;;) {
    const [row] = await database.sql<{ open: number }[]>`
      select count(*)::int as open from notifications where state in ('pending', 'started', 'held')`;
    if (row?.open === 0) return;
    // The verdict names them.
    if (performance.now() > deadline)
      return say(`${row?.open} do not end\n${temporal.output().slice(-2_000)}`);
    await sleep(500);
  }
}

interface Found extends Omit<Awaited<ReturnType<typeof judge>>, 'faults'> {
  readonly versions: readonly string[];
  /** Still waiting when the last version ran. */
  readonly ladders: number;
  readonly held: number;
  readonly steps: readonly Step[];
}

const text = ({ steps, ...found }: Found) =>
  [
    ...steps.map(
      ({ version, schemaSeconds, restartSeconds, pauseSeconds }) =>
        `to ${version}: schema ${schemaSeconds} s, restart ${restartSeconds} s, longest time without a delivery ${pauseSeconds} s`,
    ),
    ...Object.entries(found).map(([name, value]) => `${name}: ${String(value)}`),
  ].join('\n');

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
