import type { Command } from 'commander';
import type { KeyEnvironment } from '../db/keys';
import { countQuotes, type QuoteCount } from '../db/quotes/read';
import { currentMonth, monthlyUsage, selfService, TEST_LIMIT_PER_MONTH } from '../db/notifications/quota';
import type { MonthlyCount, SelfService } from '../db/notifications/quota';
import type { Tenant } from '../domain/tenant';
import { TEST_EVENT_TYPE } from '../domain/notification-states';
import { environmentOption, month as monthArgument } from './arguments';
import { examplesText, handle, type OpsDeps } from './call';
import { idOf } from './ids';
import { listed, snakeCased, type Answer } from './output';

const EXAMPLES = `
  ops usage                             of all partners, a line for each environment
  ops usage --partner P100001           by event type
  ops usage --partner P100001 --month 2026-11 --environment live --json`;

interface Counts {
  readonly month: string;
  readonly deliveries: readonly MonthlyCount[];
  readonly quotes: readonly QuoteCount[];
  readonly again: readonly SelfService[];
}

export function addUsageCommand(program: Command, deps: OpsDeps): void {
  const usage = program
    .command('usage')
    .description(
      'Quotes and deliveries of a UTC month, and what partners had sent again themselves; of one by event type, with what is left of the limit of tests.',
    )
    .option('--partner <partner>', 'of this partner only, by event type', idOf('partner'))
    .option('--month <month>', 'such as 2026-11; default: the current one', monthArgument)
    .addOption(environmentOption('of this environment only'))
    .addHelpText('after', examplesText(EXAMPLES));
  handle<{ month?: string }>(usage, deps, async ({ db, options }) => {
    const { partner: partnerId, environment } = options;
    const month = options.month ?? (await currentMonth(db));
    const wanted = { partnerId, month, environment };
    const counts: Counts = {
      month: month.slice(0, 7),
      deliveries: await monthlyUsage(db, wanted),
      quotes: await countQuotes(db, wanted),
      again: await selfService(db, wanted),
    };
    const environments = environment === undefined ? (['live', 'sandbox'] as const) : [environment];
    return partnerId === undefined ? ofAll(counts) : ofOne(partnerId, environments, counts);
  });
}

function ofOne(
  partnerId: string,
  environments: readonly KeyEnvironment[],
  { month, deliveries, quotes, again }: Counts,
): Answer {
  // The limit of tests is worth a line even when none was sent.
  const none = { partnerId, eventType: TEST_EVENT_TYPE, delivered: 0, failed: 0, reserved: 0 };
  const counts = environments.flatMap((environment): readonly MonthlyCount[] => {
    const own = deliveries.filter((one) => one.environment === environment);
    const tested = own.some(({ eventType }) => eventType === TEST_EVENT_TYPE);
    return tested ? own : [...own, { environment, ...none }];
  });
  const answer = listed(counts, countView, {
    environment: 'environment',
    event: 'event_type',
    delivered: 'delivered',
    failed: 'failed',
    reserved: 'reserved',
    limit: 'limit',
    left: 'left',
  });
  const given = environments.map(
    (one) => [one, quotes.find(({ environment }) => environment === one)?.quotes ?? 0] as const,
  );
  const said = given.map(([one, count]) => `${count} ${one}`).join(', ');
  const ownSends = again.map(
    (one) =>
      `\nSent again by itself, ${one.environment}: ${one.resends} resends, ${one.recoveries} recoveries of ${one.recovered} notifications.`,
  );
  return {
    json: {
      partner_id: partnerId,
      month,
      quotes: Object.fromEntries(given),
      counts: answer.json,
      sent_again: Object.fromEntries(
        again.map(({ partnerId: _, environment, ...own }) => [environment, own]),
      ),
    },
    text: (most) =>
      `${partnerId}, ${month} (UTC). Quotes: ${said}. Deliveries:\n${answer.text(most)}${ownSends.join('')}`,
  };
}

function countView({ partnerId: _, ...one }: MonthlyCount) {
  const limit = one.eventType === TEST_EVENT_TYPE ? TEST_LIMIT_PER_MONTH : null;
  // A delivery under way has reserved its part of the limit.
  const left = limit === null ? null : Math.max(limit - one.delivered - one.reserved, 0);
  return { ...snakeCased(one), limit, left };
}

const emptyLine = (partner_id: string, environment: KeyEnvironment) => ({
  partner_id,
  environment,
  quotes: 0,
  delivered: 0,
  failed: 0,
  resends: 0,
  recoveries: 0,
  recovered: 0,
});

function ofAll({ month, deliveries, quotes, again }: Counts): Answer {
  const found = new Map<string, ReturnType<typeof emptyLine>>();
  const lineOf = ({ partnerId, environment }: Tenant) => {
    const key = `${partnerId} ${environment}`;
    const line = found.get(key) ?? emptyLine(partnerId, environment);
    found.set(key, line);
    return line;
  };
  for (const one of deliveries) {
    const line = lineOf(one);
    line.delivered += one.delivered;
    line.failed += one.failed;
  }
  for (const one of quotes) lineOf(one).quotes = one.quotes;
  for (const { partnerId, environment, ...own } of again)
    Object.assign(lineOf({ partnerId, environment }), own);
  const lines = [...found.keys()].toSorted().flatMap((key) => found.get(key) ?? []);
  const answer = listed(lines, (one) => one, {
    partner: 'partner_id',
    environment: 'environment',
    quotes: 'quotes',
    delivered: 'delivered',
    failed: 'failed',
    'own resends': 'resends',
    'own recoveries': 'recoveries',
    recovered: 'recovered',
  });
  return { json: { month, partners: answer.json }, text: (most) => `${month} (UTC):\n${answer.text(most)}` };
}
