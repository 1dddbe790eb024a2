import type { Command } from 'commander';
import { appendChange } from '../db/audit/change-log';
import { Refused } from '../db/refused';
import { wholeNumber } from './arguments';
import { handle, type Call, type DeploymentAnswer, type OpsDeps } from './call';
import { TemporalUnreachable } from './exit-codes';
import { table } from './output';

const EXAMPLES = `
Examples:
  ops deployments show                        builds of the worker, and which one is current
  ops deployments set-current 2026-11-21.1    new and waiting deliveries go to this build
  ops deployments ramp 2026-11-21.1 --percent 5
  ops deployments ramp --end`;

/** `ops deployments …` */
export function addDeploymentCommands(program: Command, deps: OpsDeps): void {
  const deployments = program
    .command('deployments')
    .description('Builds of the worker (WORKER_BUILD_ID), and which of them works.')
    .addHelpText('after', EXAMPLES);

  const show = deployments.command('show').description('All builds, and who gets the deliveries.');
  handle(show, deps, async () => {
    const { current, ramping, builds } = taken(await deps.deployment.describe());
    const share = ramping === null ? '' : `, ${ramping.buildId} gets ${ramping.percent} %`;
    return {
      json: {
        current,
        ramping: ramping && { build_id: ramping.buildId, percent: ramping.percent },
        builds: builds.map(({ buildId, status }) => ({ build_id: buildId, status })),
      },
      text: [
        `Current: ${current ?? 'workers without a build id'}${share}`,
        table(
          ['build', 'status'],
          builds.map((one) => [one.buildId, one.status]),
        ),
      ].join('\n'),
    };
  });

  const setCurrent = deployments
    .command('set-current')
    .argument('<build-id>')
    .description('Make a build current, in about 20 s; its workers must be running. Also the way back.');
  handle(setCurrent, deps, async (call, buildId = '') => {
    const { actor } = deps;
    await ofBuild(buildId, await deps.deployment.setCurrent(buildId));
    await log(call, actor, 'set-current', buildId, {});
    return { json: { current: buildId }, text: `Build ${buildId} is current.` };
  });

  const ramp = deployments
    .command('ramp')
    .argument('[build-id]')
    .description('Give a build a share of the deliveries first. Meanwhile no delivery takes the fast path.')
    .option('--percent <n>', '0 to 100', wholeNumber(0, 100))
    .option('--end', 'all deliveries go to the current build again');
  handle<{ end?: true; percent?: number }>(ramp, deps, async (call, buildId) => {
    const { end = false, percent } = call.options;
    if (end ? buildId !== undefined || percent !== undefined : buildId === undefined || percent === undefined)
      throw new Refused('conflict', 'Give a build with --percent, or --end alone.');
    const { actor } = deps;
    await ofBuild(buildId, await deps.deployment.ramp(end ? null : (buildId ?? null), percent ?? 0));
    await log(call, actor, 'ramp', end ? '' : (buildId ?? ''), { percent: percent ?? 0 });
    return {
      json: { ramping: end ? null : { build_id: buildId, percent } },
      text: end ? 'No build is ramping.' : `Build ${buildId} gets ${percent} % of the deliveries.`,
    };
  });

  /** @throws as `taken`; Refused as not found when Temporal refuses a build that it does not know. */
  async function ofBuild(buildId: string | undefined, answer: DeploymentAnswer<void>): Promise<void> {
    if (answer.kind === 'refused' && buildId !== undefined) {
      const { builds } = taken(await deps.deployment.describe());
      if (builds.every((one) => one.buildId !== buildId)) {
        throw new Refused(
          'not_found',
          `Build ${buildId} does not exist: ops deployments show has those that do.`,
        );
      }
    }
    taken(answer);
  }

  async function log(
    { db }: Call,
    actor: string,
    verb: string,
    subject: string,
    details: Record<string, unknown>,
  ): Promise<void> {
    await appendChange(db, { actor, action: `deployments.${verb}`, subject, details });
  }
}

/** @throws TemporalUnreachable; Refused with Temporal's own words. */
function taken<T>(answer: DeploymentAnswer<T>): T {
  switch (answer.kind) {
    case 'done':
      return answer.value;
    case 'refused':
      throw new Refused('conflict', `Temporal refuses that: ${answer.why}`);
    case 'unreachable':
      throw new TemporalUnreachable(answer);
  }
}
