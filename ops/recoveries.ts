import type { Command } from 'commander';
import { existingPartner } from '../db/catalogue/partners';
import {
  beginRecovery,
  endRecovery,
  listRecoveries,
  resumeRecovery,
  RECOVERED_PER_SECOND,
  runRecovery,
  type Recovery,
} from '../db/notifications/recovery';
import { countUndelivered, type RecoverySpan, type UndeliveredCount } from '../db/notifications/recoverable';
import { Refused } from '../db/refused';
import {
  environmentOption,
  HIGHEST_PER_SECOND,
  momentOrAgo,
  wholeNumber,
  type MomentOrAgo,
  idOf,
} from './arguments';
import { handle, type Call, type OpsDeps } from './call';
import { listed, type Answer } from './output';
import { limited } from './paging';
import { LONGEST_RECOVERY_DAYS } from '../contracts/notification-recovery';
import { resolveSpan } from './recover-span';

const EXAMPLES = `
Examples:
  ops notifications recover --partner P100001 --since 36h                  counts only
  ops notifications recover --partner P100001 --since 2026-11-03 --until 2026-11-05T12:00Z --yes
  ops notifications recover --resume rcv_01K…                              after an interruption`;

interface RecoverOptions {
  readonly since?: MomentOrAgo;
  readonly until?: MomentOrAgo;
  readonly resume?: string;
}

/** Why a notification is left as it is. */
const LEFT: Readonly<Record<Exclude<UndeliveredCount['plan'], 'send'>, string>> = {
  test: 'test: resend it by itself',
  under_way: 'under way',
  cancelled: 'cancelled',
  no_endpoint: 'no active endpoint',
  body_removed: 'its body was removed',
};

/** `ops notifications recover` and `ops notifications recoveries`. */
export function addRecoveryCommands(notifications: Command, deps: OpsDeps): void {
  const recover = notifications
    .command('recover')
    .description(
      'Send everything that a partner did not get in a span once more: what failed, expired or is held. ' +
        'Counts only, unless --yes is given.',
    )
    .option('--partner <partner>', 'whose', idOf('partner'))
    .addOption(environmentOption('of this environment only'))
    .option(
      '--since <moment>',
      `from this moment on, or so long ago; at most ${LONGEST_RECOVERY_DAYS}d`,
      momentOrAgo,
    )
    .option('--until <moment>', 'up to this moment, or so long ago; default: now', momentOrAgo)
    .option('--yes', 'send, do not only count')
    .option('--resume <recovery>', 'go on with one that was interrupted', idOf('recovery'))
    .option(
      '--per-second <n>',
      `most per second, 1 to ${HIGHEST_PER_SECOND}; default: ${RECOVERED_PER_SECOND}`,
      wholeNumber(1, HIGHEST_PER_SECOND),
    )
    .addHelpText('after', EXAMPLES);
  handle<RecoverOptions>(recover, deps, async (call) => {
    const { resume: resumed } = call.options;
    if (resumed !== undefined) return resume(call, resumed);
    const span = await spanOf(call);
    const counts = await countUndelivered(call.db, span);
    const found = total(counts);
    if (!call.options.yes || found === 0) return counted(span, counts, rateOf(call));
    const { actor } = deps;
    return run(call, await beginRecovery(call.db, { ...span, perSecond: rateOf(call), found, actor }));
  });

  const list = notifications
    .command('recoveries')
    .description('Recoveries, newest first: what each has sent, and which can be resumed.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'));
  handle<{ limit: number }>(limited(list, 20), deps, async (call) => {
    const { partner: partnerId, limit } = call.options;
    const found = await listRecoveries(call.db, { partnerId, limit });
    return listed(found, view, {
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

  async function resume(call: Call, recoveryId: string): Promise<Answer> {
    const { perSecond } = call.options;
    return run(call, await resumeRecovery(call.db, recoveryId, { actor: deps.actor, perSecond }));
  }

  async function run(call: Call, recovery: Recovery): Promise<Answer> {
    const tell = (text: string) => {
      if (!call.options.json) deps.err(`${text}\n`);
    };
    const again = `ops notifications recover --resume ${recovery.recoveryId}`;
    tell(`Recovery ${recovery.recoveryId}, ${recovery.perSecond} per second. If it ends early: ${again}`);
    const { actor } = deps;
    const stopped = await runRecovery(recovery, {
      db: call.db,
      actor,
      interrupted: deps.interruptible(),
      onProgress: ({ found, sent, skipped }) =>
        tell(`${sent} of ${found} sent${skipped === 0 ? '' : `, ${skipped} passed over`}`),
    });
    const state = stopped === null ? 'done' : 'interrupted';
    const ended = await endRecovery(call.db, { ...recovery, actor }, state);
    const { found, sent, skipped } = ended;
    const figures = `${sent} of ${found} sent, ${skipped} passed over`;
    if (stopped === 'interrupted') {
      throw new Refused('conflict', `Interrupted: ${figures}. Go on with ${again}`);
    }
    if (stopped !== null)
      throw new Refused('conflict', `${stopped.message} ${figures}; then go on: ${again}`);
    return {
      json: view(ended),
      text: `Recovery ${ended.recoveryId} is done: ${figures}. They leave after everything that is live.`,
    };
  }
}

async function spanOf(call: Call<RecoverOptions>): Promise<RecoverySpan> {
  const { partner: partnerId, environment = null, since, until = { agoSeconds: 0 } } = call.options;
  if (partnerId === undefined || since === undefined) {
    throw new Refused('invalid', 'Say --partner and --since, or --resume with the id of a recovery.');
  }
  await existingPartner(call.db, partnerId);
  return { partnerId, environment, ...(await resolveSpan(call.db, since, until)) };
}

const rateOf = (call: Call) => call.options.perSecond ?? RECOVERED_PER_SECOND;

const total = (counts: readonly UndeliveredCount[]) =>
  counts.filter(({ plan }) => plan === 'send').reduce((sum, { count }) => sum + count, 0);

/** What a recovery would do. */
function counted(span: RecoverySpan, counts: readonly UndeliveredCount[], perSecond: number): Answer {
  const found = total(counts);
  const lines = listed(
    counts,
    ({ environment, eventType, state, count, plan }) => ({
      environment,
      event_type: eventType,
      state,
      count,
      plan,
    }),
    {
      environment: 'environment',
      event: 'event_type',
      state: 'state',
      count: 'count',
      recovery: ({ plan }) => (plan === 'send' ? 'would be sent' : `left: ${LEFT[plan]}`),
    },
  );
  const minutes = Math.ceil(found / perSecond / 60);
  return {
    json: {
      dry_run: true,
      partner_id: span.partnerId,
      environment: span.environment,
      since: span.since,
      until: span.until,
      would_send: found,
      counts: lines.json,
    },
    text: [
      `Never delivered to ${span.partnerId}, created from ${span.since} to ${span.until}:`,
      lines.text,
      found === 0
        ? 'Nothing to send.'
        : `${found} would be sent, in about ${minutes} min at ${perSecond} per second. Nothing was sent: add --yes.`,
    ].join('\n'),
  };
}

const view = (one: Recovery) => ({
  recovery_id: one.recoveryId,
  partner_id: one.partnerId,
  environment: one.environment,
  since: one.since,
  until: one.until,
  state: one.state,
  per_second: one.perSecond,
  found: one.found,
  sent: one.sent,
  skipped: one.skipped,
  key_id: one.keyId,
  created_at: new Date(one.createdMs),
  ended_at: one.endedMs === null ? null : new Date(one.endedMs),
});
