import type { Command } from 'commander';
import {
  beginRecovery,
  endRecovery,
  listRecoveries,
  RECOVERED_PER_SECOND,
  resumeRecovery,
  runRecovery,
  type Recovery,
} from '../db/notifications/recovery';
import { countUndelivered, resolveSpan } from '../db/notifications/recoverable';
import type { RecoverySpan, UndeliveredCount } from '../db/notifications/recoverable';
import { Refused } from '../db/refused';
import { LONGEST_RECOVERY_DAYS } from '../domain/retention';
import { environmentOption, limited, perSecondOption, withSpan } from './arguments';
import { examplesText, handle, type Call, type OpsDeps } from './call';
import { idOf } from './ids';
import { listed, snakeCased, type Answer } from './output';

const EXAMPLES = `
  ops notifications recover --partner P100001 --since 36h                  counts only
  ops notifications recover --partner P100001 --since 2026-11-03 --until 2026-11-05T12:00Z --yes
  ops notifications recover --resume rcv_01K…                              after an interruption`;

export function addRecoveryCommands(notifications: Command, deps: OpsDeps): void {
  const recover = notifications
    .command('recover')
    .description(
      'Send everything that a partner did not get in a span once more: what failed, expired or is held. ' +
        'Counts only, unless --yes is given.',
    )
    .option('--partner <partner>', 'whose', idOf('partner'))
    .addOption(environmentOption('of this environment only'))
    .option('--yes', 'send, do not only count')
    .option('--resume <recovery>', 'continue one that was interrupted', idOf('recovery'))
    .addOption(perSecondOption())
    .addHelpText('after', examplesText(EXAMPLES));
  withSpan(recover, 'created from then on', `at most ${LONGEST_RECOVERY_DAYS}d`);
  handle<{ resume?: string }>(recover, deps, async (call) => {
    const { resume, yes, perSecond } = call.options;
    if (resume !== undefined)
      return run(call, await resumeRecovery(call.db, resume, { actor: deps.actor, perSecond }));
    const span = await spanOf(call);
    const counts = await countUndelivered(call.db, span);
    const found = counts.filter(({ plan }) => plan === 'send').reduce((sum, { count }) => sum + count, 0);
    const rate = perSecond ?? RECOVERED_PER_SECOND;
    if (!yes || found === 0) return countAnswer(span, counts, found, rate);
    const wanted = { ...span, perSecond: rate, found, actor: deps.actor };
    return run(call, await beginRecovery(call.db, wanted));
  });

  const list = notifications
    .command('recoveries')
    .description('Recoveries, newest first: what each has sent, and which can be resumed.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'));
  handle<{ limit: number }>(limited(list, 20), deps, async ({ db, options }) => {
    const { partner: partnerId, limit } = options;
    return listed(await listRecoveries(db, { partnerId, limit }), view, {
      recovery: 'recovery_id',
      partner: 'partner_id',
      since: 'since',
      until: 'until',
      state: 'state',
      found: 'found',
      sent: 'sent',
      skipped: 'skipped',
      by: ({ keyId }) => keyId ?? 'an operator',
      begun: 'created_at',
    });
  });
}

async function run({ db, deps, options }: Call, recovery: Recovery): Promise<Answer> {
  const report = (text: string) => {
    if (!options.json) deps.err(`${text}\n`);
  };
  const again = `ops notifications recover --resume ${recovery.recoveryId}`;
  report(`Recovery ${recovery.recoveryId}, ${recovery.perSecond} per second. If it ends early: ${again}`);
  const { actor } = deps;
  const stopped = await runRecovery(recovery, {
    db,
    actor,
    interrupted: deps.interruptible(),
    onProgress: ({ found, sent, skipped }) =>
      report(`${sent} of ${found} sent${skipped === 0 ? '' : `, ${skipped} passed over`}`),
  });
  const ended = await endRecovery(db, { ...recovery, actor }, stopped === null ? 'done' : 'interrupted');
  const figures = `${ended.sent} of ${ended.found} sent, ${ended.skipped} passed over`;
  if (stopped === 'interrupted')
    throw new Refused('conflict', `Interrupted: ${figures}. Continue with ${again}`);
  if (stopped !== null)
    throw new Refused('conflict', `${stopped.message} ${figures}; then continue: ${again}`);
  return {
    json: view(ended),
    text: `Recovery ${ended.recoveryId} is done: ${figures}. They leave after everything that is live.`,
  };
}

async function spanOf({ db, options }: Call): Promise<RecoverySpan> {
  const { partner: partnerId, environment = null, since, until } = options;
  if (partnerId === undefined || since === undefined)
    throw new Refused('invalid', 'Say --partner and --since, or --resume with the id of a recovery.');
  return { partnerId, environment, ...(await resolveSpan(db, since, until)) };
}

const PLANS: Readonly<Record<UndeliveredCount['plan'], string>> = {
  send: 'would be sent',
  test: 'left: test: resend it by itself',
  under_way: 'left: under way',
  cancelled: 'left: cancelled',
  no_endpoint: 'left: no active endpoint',
  body_removed: 'left: its body was removed',
};

/** @param rate per second */
function countAnswer(span: RecoverySpan, counts: readonly UndeliveredCount[], found: number, rate: number) {
  const lines = listed(counts, snakeCased, {
    environment: 'environment',
    event: 'event_type',
    state: 'state',
    count: 'count',
    recovery: ({ plan }) => PLANS[plan],
  });
  const minutes = Math.ceil(found / rate / 60);
  const result =
    found === 0
      ? 'Nothing to send.'
      : `${found} would be sent, in about ${minutes} min at ${rate} per second. Nothing was sent: add --yes.`;
  return {
    json: { dry_run: true, ...snakeCased(span), would_send: found, counts: lines.json },
    text: (most: number) =>
      `Never delivered to ${span.partnerId}, created from ${span.since} to ${span.until}:\n${lines.text(most)}\n${result}`,
  };
}

const view = ({ runner: _, last: __, createdMs, endedMs, ...rest }: Recovery) => ({
  ...snakeCased(rest),
  created_at: new Date(createdMs),
  ended_at: endedMs === null ? null : new Date(endedMs),
});
