import type { Command } from 'commander';
import { appendChange } from '../db/audit/change-log';
import { listProcesses } from '../db/processes';
import { Refused } from '../db/refused';
import { wholeNumber } from './arguments';
import { group, handle, type Call, type OpsDeps } from './call';
import { listed, snakeCased } from './output';
import type { TemporalOrders } from './temporal';

const EXAMPLES = `
  ops deployments show                        builds of the worker, and which one is current
  ops deployments check                       can this release continue what is running?
  ops deployments set-current 2026-11-21.1    new and waiting deliveries go to this build
  ops deployments ramp 2026-11-21.1 --percent 5
  ops deployments ramp --end`;

export function addDeploymentCommands(program: Command, deps: OpsDeps): void {
  const deployments = group(
    program,
    'deployments',
    'Builds of the worker (WORKER_BUILD_ID), and which of them works.',
    EXAMPLES,
  );

  const show = deployments.command('show').description('All builds, and who gets the deliveries.');
  handle(show, deps, async () => {
    const { current, ramping, builds } = await (await deps.temporal()).describeDeployment();
    const share = ramping === null ? '' : `, ${ramping.buildId} gets ${ramping.percent} %`;
    const all = listed(builds, snakeCased, { build: 'build_id', status: 'status' });
    return {
      json: { current, ramping: ramping && snakeCased(ramping), builds: all.json },
      text: (most) =>
        `Current: ${current ?? 'none, so workers without a build id'}${share}\n${all.text(most)}`,
    };
  });

  const check = deployments
    .command('check')
    .description(
      'Replay deliveries that are running now with the code of this release; before `set-current`.',
    )
    .option('--most <n>', 'of each kind: sending, retrying, paused, retention', wholeNumber(1, 10_000), 300);
  handle<{ most: number }>(check, deps, async ({ options: { most } }) => {
    const { replayed, broken } = await (await deps.temporal()).replayRunning(deps.workflows(), most);
    const counts = Object.entries(replayed).map(([kind, count]) => `${count} ${kind}`);
    const lines = broken.map((one) => `\n${one.workflowId}: ${one.error}`);
    const failure = `This release cannot continue ${broken.length} of them: do not make it current.`;
    return {
      json: { replayed, broken: broken.map(snakeCased) },
      text: `Replayed: ${counts.join(', ')}.${lines.join('')}`,
      failure: broken.length === 0 ? undefined : failure,
    };
  });

  const setCurrent = deployments
    .command('set-current')
    .argument('<build-id>')
    .description('Make a build current, in about 20 s; its workers must be running. Also the way back.');
  handle(setCurrent, deps, async (call, buildId = '') => {
    await order(call, 'set-current', buildId, {}, (temporal) => temporal.setCurrent(buildId));
    const runs = (await listProcesses(call.db)).some(
      ({ kind, build, lost }) => kind === 'worker' && build === buildId && !lost,
    );
    const warning = runs ? '' : ' WARNING: no worker is of it, and nothing is sent before one runs.';
    return { json: { current: buildId, runs }, text: `Build ${buildId} is current.${warning}` };
  });

  const ramp = deployments
    .command('ramp')
    .argument('[build-id]')
    .description('Give a build a share of the deliveries first. Meanwhile no delivery takes the fast path.')
    .option('--percent <n>', '0 to 100', wholeNumber(0, 100))
    .option('--end', 'all deliveries go to the current build again');
  handle<{ end?: true; percent?: number }>(ramp, deps, async (call, buildId = '') => {
    const { end = false, percent } = call.options;
    if (end ? buildId !== '' || percent !== undefined : buildId === '' || percent === undefined)
      throw new Refused('conflict', 'Give a build with --percent, or --end alone.');
    await order(call, 'ramp', buildId, { percent: percent ?? 0 }, (temporal) =>
      temporal.ramp(end ? null : buildId, percent ?? 0),
    );
    return {
      json: { ramping: end ? null : { build_id: buildId, percent } },
      text: end ? 'No build is ramping.' : `Build ${buildId} gets ${percent} % of the deliveries.`,
    };
  });
}

async function order(
  { db, deps }: Call,
  verb: string,
  buildId: string,
  details: Record<string, unknown>,
  give: (temporal: TemporalOrders) => Promise<void>,
): Promise<void> {
  // Read before the order: a shared account must not give one.
  const { actor } = deps;
  const temporal = await deps.temporal();
  await give(temporal).catch(async (error: unknown) => {
    if (!(error instanceof Refused) || buildId === '') throw error;
    const { builds } = await temporal.describeDeployment();
    if (builds.some((one) => one.buildId === buildId)) throw error;
    throw new Refused(
      'not_found',
      `Build ${buildId} does not exist: ops deployments show has those that do.`,
    );
  });
  await appendChange(db, { actor, action: `deployments.${verb}`, subject: buildId, details });
}
