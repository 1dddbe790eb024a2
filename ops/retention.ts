import type { Command } from 'commander';
import { countExpired, type RetentionCount } from '../db/retention/count';
import { appendChange, lastRemovals } from '../db/audit/change-log';
import { Refused } from '../db/refused';
import { handle, type Call, type OpsDeps } from './call';
import { TemporalUnreachable } from './exit-codes';
import { table, type Answer } from './output';

const EXAMPLES = `
Examples:
  ops retention show               how long what is kept, what is past its time, what went last
  ops retention run --dry-run      counts what would go now
  ops retention run --yes          lets a worker remove it now, instead of waiting for tonight's run`;

/** Enough to see what the last runs did. */
const SHOWN_REMOVALS = 10;

/** `ops retention …` */
export function addRetentionCommands(program: Command, deps: OpsDeps): void {
  const retention = program
    .command('retention')
    .description(
      'What is removed once its time is over (RETENTION_* of migrate): every day by a Temporal schedule, or by hand.',
    )
    .addHelpText('after', EXAMPLES);

  const show = retention
    .command('show')
    .description('How long data is kept, what is past its time, and what was removed last.');
  handle(show, deps, async (call) => {
    const at = deps.retentionAt();
    const counts = await countExpired(call.db);
    const removals = await lastRemovals(call.db, SHOWN_REMOVALS);
    const when = at === 'off' ? 'never (RETENTION_AT is off)' : `every day at ${at} UTC`;
    return {
      json: {
        at,
        counts: counts.map(view),
        last_removals: removals,
      },
      text: [
        `The next run removes this: ${when}.`,
        countTable(counts),
        ...counts.flatMap(({ kind, months }) =>
          months.length === 0 ? [] : [`Whole months of ${kind}: ${months.join(', ')}.`],
        ),
        '',
        'Last removals:',
        table(
          ['when', 'by', 'what', 'rows'],
          removals.map((one) => [one.changed_at, one.login, one.subject, one.rows]),
        ),
      ].join('\n'),
    };
  });

  const run = retention
    .command('run')
    .description('Let a worker remove what is past its time now. Counts only, unless --yes is given.')
    .option('--dry-run', 'count only, which is what it does without --yes too')
    .option('--yes', 'start the removal');
  handle(run, deps, async (call) => {
    if (call.options.yes && !call.options.dryRun) return remove(call);
    const counts = await countExpired(call.db);
    const text = `${countTable(counts)}\nNothing was removed: add --yes.`;
    return { json: { dry_run: true, counts: counts.map(view) }, text };
  });

  async function remove(call: Call): Promise<Answer> {
    const { actor } = deps;
    await call.db.transaction(async (tx) => {
      await appendChange(tx, { actor, action: 'retention.run', subject: 'retention', details: {} });
      const answer = await deps.startRetention();
      if (answer.kind === 'unreachable') throw new TemporalUnreachable(answer);
      if (answer.kind === 'under_way')
        throw new Refused('conflict', 'A removal that was started by hand is still under way.');
    });
    const text = 'A worker removes it now; ops retention show lists what went.';
    return { json: { started: true }, text };
  }
}

const countTable = (counts: readonly RetentionCount[]) =>
  table(
    ['kind', 'kept for days', 'past its time', 'whole months', 'must stay'],
    counts.map((one) => [one.kind, one.days, one.rows, one.months.length, one.staying]),
  );

const view = ({ kind, days, rows, months, staying }: RetentionCount) => ({
  kind,
  kept_days: days,
  past_its_time: rows,
  whole_months: months,
  must_stay: staying,
});
