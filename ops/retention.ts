import type { Command } from 'commander';
import { lastRemovals } from '../db/audit/change-log';
import { countExpired, type RetentionCount } from '../db/retention/count';
import { changeAndLog, group, handle, type OpsDeps } from './call';
import { listed } from './output';

const EXAMPLES = `
  ops retention show               how long what is kept, what is past its time, what went last
  ops retention run --dry-run      counts what would go now
  ops retention run --yes          lets a worker remove it now, instead of waiting for tonight's run`;

const SHOWN_REMOVALS = 10;

export function addRetentionCommands(program: Command, deps: OpsDeps): void {
  const retention = group(
    program,
    'retention',
    'What is removed once its time is over (RETENTION_* of migrate): every day by a Temporal schedule, or by hand.',
    EXAMPLES,
  );

  const show = retention
    .command('show')
    .description('How long data is kept, what is past its time, and what was removed last.');
  handle(show, deps, async ({ db }) => {
    const at = deps.retentionAt();
    const expired = await countExpired(db);
    const counts = countTable(expired);
    const removals = listed(await lastRemovals(db, SHOWN_REMOVALS), (one) => one, {
      when: 'changed_at',
      by: 'login',
      what: 'subject',
      rows: 'rows',
    });
    const when = at === 'off' ? 'never' : `every day at ${at} UTC`;
    const whose = "RETENTION_AT as this command reads it; the workers' own decides";
    const months = expired.filter((one) => one.months.length > 0);
    const wholeMonths = months.map(({ kind, months }) => `\nWhole months of ${kind}: ${months.join(', ')}.`);
    return {
      json: { at, counts: counts.json, last_removals: removals.json },
      text: (most) =>
        `The next run removes this: ${when} (${whose}).\n${counts.text(most)}${wholeMonths.join('')}\n\n` +
        `Last removals:\n${removals.text(most)}`,
    };
  });

  const run = retention
    .command('run')
    .description('Let a worker remove what is past its time now. Counts only, unless --yes is given.')
    .option('--dry-run', 'count only, which is what it does without --yes too')
    .option('--yes', 'start the removal');
  handle(run, deps, async (call) => {
    if (!call.options.yes || call.options.dryRun) {
      const counts = countTable(await countExpired(call.db));
      return {
        json: { dry_run: true, counts: counts.json },
        text: (most) => `${counts.text(most)}\nNothing was removed: add --yes.`,
      };
    }
    await changeAndLog(call, 'retention.run', async (_tx, log) => {
      await log('retention', {});
      await (await deps.temporal()).startRetention();
    });
    return { json: { started: true }, text: 'A worker removes it now; ops retention show lists what went.' };
  });
}

const countTable = (counts: readonly RetentionCount[]) =>
  listed(
    counts,
    ({ kind, days, rows, months, staying }) => ({
      kind,
      kept_days: days,
      past_its_time: rows,
      whole_months: months,
      must_stay: staying,
    }),
    {
      kind: 'kind',
      'kept for days': 'kept_days',
      'past its time': 'past_its_time',
      'whole months': ({ months }) => months.length,
      'must stay': 'must_stay',
    },
  );
