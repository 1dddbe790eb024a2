import type { Command } from 'commander';
import { applyRetentionStep } from '../db/retention/apply';
import { countExpired, type RetentionCount } from '../db/retention/count';
import { listChanges } from '../db/audit/change-log';
import { RETENTION_KINDS, type RetentionKind } from '../domain/retention';
import { handle, type Answer, type Call, type OpsDeps } from './call';
import { table } from './output';

const EXAMPLES = `
Examples:
  ops retention show               how long what is kept, what is past its time, what went last
  ops retention run --dry-run      counts what would go now
  ops retention run --yes          removes it now, instead of waiting for tonight's run`;

/** Enough to see what the last runs did. */
const SHOWN_REMOVALS = 10;

/** `ops retention …` */
export function addRetentionCommands(program: Command, deps: OpsDeps): void {
  const retention = program
    .command('retention')
    .description(
      'What is removed once its time is over (RETENTION_*): every day by a Temporal schedule, or by hand.',
    )
    .addHelpText('after', EXAMPLES);

  const show = retention
    .command('show')
    .description('How long data is kept, what is past its time, and what was removed last.');
  handle(show, deps, async (call) => {
    const { at, days } = deps.retention();
    const counts = await countExpired(call.db, days);
    const last = [];
    for (const action of ['retention.drop', 'retention.remove'])
      last.push(...(await listChanges(call.db, { action, limit: SHOWN_REMOVALS })));
    const removals = last.toSorted((a, b) => b.changeId - a.changeId).slice(0, SHOWN_REMOVALS);
    const when = at === 'off' ? 'never (RETENTION_AT is off)' : `every day at ${at} UTC`;
    return {
      json: {
        at,
        counts: counts.map(view),
        last_removals: removals.map(({ changedAt, actor, subject, details }) => ({
          changed_at: changedAt,
          actor,
          subject,
          ...details,
        })),
      },
      text: [
        `Removed ${when}; a worker with other settings may say otherwise.`,
        countTable(counts),
        '',
        'Last removals:',
        table(
          ['when', 'by', 'what', 'rows'],
          removals.map((one) => [one.changedAt, one.actor, one.subject, Number(one.details['rows'])]),
        ),
      ].join('\n'),
    };
  });

  const run = retention
    .command('run')
    .description('Remove what is past its time now. Counts only, unless --yes is given.')
    .option('--dry-run', 'count only, which is what it does without --yes too')
    .option('--yes', 'remove it');
  handle(run, deps, async (call) => {
    const { days } = deps.retention();
    if (call.options['yes'] === true && call.options['dryRun'] !== true) return remove(call);
    const counts = await countExpired(call.db, days);
    const text = `${countTable(counts)}\nNothing was removed: add --yes.`;
    return { json: { dry_run: true, counts: counts.map(view) }, text };
  });

  async function remove(call: Call): Promise<Answer> {
    const { days } = deps.retention();
    const interrupted = deps.interruptible();
    const rows: Partial<Record<RetentionKind, number>> = {};
    const busy: string[] = [];
    for (const kind of RETENTION_KINDS) {
      const task = { kind, days: days[kind], cursor: null };
      const enough = () => interrupted.aborted;
      const step = await applyRetentionStep(call.db, task, { actor: deps.actor, enough });
      rows[kind] = step.removed;
      busy.push(...step.busy);
      if (enough()) break;
    }
    const lines = Object.entries(rows).map(([kind, count]) => [kind, count] as const);
    const notes = [
      ...(busy.length > 0 ? [`In use just now, run it again: ${busy.join(', ')}`] : []),
      ...(interrupted.aborted ? ['Interrupted: run it again for the rest.'] : []),
    ];
    return {
      json: { removed: rows, busy, interrupted: interrupted.aborted },
      text: [table(['kind', 'removed'], lines), ...notes].join('\n'),
    };
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
