import type { Command } from 'commander';
import { reportEvents, type ReportedEvent } from '../db/audit/lateness';
import { createdMs } from '../db/notifications/notification';
import { LONGEST_SPAN_DAYS } from '../db/notifications/operator';
import { resolveSpan, type MomentOrAgo } from '../db/notifications/recoverable';
import type { Reader } from '../db/postgres/connect';
import { lateReasons, latenessMs, reasonText, type LateReason } from '../domain/lateness';
import { duration, environmentOption, limited, withSpan } from './arguments';
import { handle, type OpsDeps } from './call';
import { idOf } from './ids';
import { listed, printable, textOf, type Answer } from './output';

/** A partner's busiest day; more is asked for in spans. */
const MOST_EVENTS = 10_000;

export function addReportCommand(notifications: Command, deps: OpsDeps): void {
  const report = notifications
    .command('report')
    .description(
      'What to tell a partner: when each event was created and delivered, how late, and why. Without tests.',
    )
    .requiredOption('--partner <partner>', 'whose events', idOf('partner'))
    .addOption(environmentOption('of this environment only'))
    .option('--late <duration>', 'only those at least so late, such as 1m', duration)
    .option('--csv', 'as comma-separated values, for a spreadsheet');
  withSpan(report, 'created from then on', `at most ${LONGEST_SPAN_DAYS}d`, true);
  type Own = { partner: string; since: MomentOrAgo; late?: number; csv?: true; limit: number };
  handle<Own>(limited(report, MOST_EVENTS), deps, async ({ db, options }) => {
    const { partner: partnerId, environment, late = 0, csv, limit } = options;
    const span = await resolveSpan(db, options.since, options.until, LONGEST_SPAN_DAYS);
    const found = await reportEvents(db, { partnerId, environment, ...span, limit });
    // One that was sent again is reported when the whole way took so long.
    const way = (one: ReportedEvent) => latenessMs({ ...one, sentAgainAt: null });
    const events = found.filter((one) => way(one) >= late * 1_000).map(eventView);
    const { text } = listed(events, (one) => one, {
      event: 'event_id',
      type: (one) => one.event_type.replace(/^credit_application\./, ''),
      created: 'created_at',
      delivered: (one) => one.delivered_at ?? one.state,
      late: (one) => `${one.late_seconds} s`,
      why: 'why',
    });
    const delivered = found.filter(({ deliveredAt }) => deliveredAt !== null).length;
    const title = `Events of ${partnerId} created from ${span.since} to ${span.until}: ${found.length}, delivered ${delivered}, shown ${events.length}.`;
    const more = found.length === limit ? `\nThere may be more: ${limit} were read (--limit).` : '';
    return {
      json: { partner_id: partnerId, ...span, found: found.length, delivered, events },
      text: (most) => (csv ? csvOf(events) : `${title}${more}\n${text(Math.max(most, WIDE_ENOUGH))}`),
    };
  });
}

type EventView = ReturnType<typeof eventView>;

function eventView(one: ReportedEvent) {
  const reasons = lateReasons(one);
  return {
    notification_id: one.notificationId,
    event_id: one.eventId,
    event_type: one.eventType,
    environment: one.environment,
    merchant_reference: one.merchantReference,
    state: one.state,
    created_at: one.createdAt,
    sent_again_at: one.sentAgainAt,
    delivered_at: one.deliveredAt,
    late_seconds: Math.round(latenessMs(one) / 100) / 10,
    reasons: reasons.map(reasonView),
    why: reasons.map(reasonText).join('; '),
  };
}

const reasonView = ({ from, to, why, what }: LateReason) => ({ why, what, from, to });

/** Why one is or was late; nothing for a test. */
export async function reasonsOf(reader: Reader, of: Pick<ReportedEvent, 'notificationId'>) {
  const { notificationId } = of;
  // Around the moment in its id, which may be older than its row.
  const near = (ms: number) => new Date(createdMs(notificationId) + ms).toISOString();
  const span = { since: near(-1_000), until: near(1_000) };
  const [found] = await reportEvents(reader, { notificationId, ...span, limit: 1 });
  return found === undefined ? [] : lateReasons(found);
}

/** The same answer with them: in the text after the first paragraph. */
export function withReasons(answer: Answer, reasons: readonly LateReason[]): Answer {
  const text = reasons.length === 0 ? '' : `Why late: ${reasons.map(reasonText).join('; ')}.\n`;
  return {
    json: { ...(answer.json as object), why_late: reasons.map(reasonView) },
    text: (most) => textOf(answer.text, most).replace('\n\n', () => `\n${text}\n`),
  };
}

/** The reasons are what the table is for: they are not left out in a narrow terminal. */
const WIDE_ENOUGH = 200;

const CSV = [
  'event_id',
  'notification_id',
  'event_type',
  'environment',
  'merchant_reference',
  'state',
  'created_at',
  'sent_again_at',
  'delivered_at',
  'late_seconds',
  'why',
] as const;

/** RFC 4180. A field that a spreadsheet would take for a formula gets an apostrophe. */
function csvOf(events: readonly EventView[]): string {
  const cell = (value: EventView[(typeof CSV)[number]]) => {
    const text = value === null ? '' : value instanceof Date ? value.toISOString() : printable(String(value));
    const safe = /^[=+@\-\t\r]/.test(text) && typeof value === 'string' ? `'${text}` : text;
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return [CSV.join(','), ...events.map((one) => CSV.map((name) => cell(one[name])).join(','))].join('\r\n');
}
