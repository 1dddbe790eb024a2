import { TEST_EVENT_TYPE } from '../domain/notification-states';
import type { Command } from 'commander';
import type { KeyEnvironment } from '../db/keys/key';
import { existingPartner } from '../db/catalogue/partners';
import { countQuotes, type QuoteCount } from '../db/quotes/read';
import {
  currentMonth,
  TEST_LIMIT_PER_MONTH,
  selfService,
  monthlyUsage,
  type SelfService,
  type MonthlyCount,
} from '../db/notifications/quota';
import { environmentOption, month as monthArgument, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { listed, snakeCased, withTables, type Answer } from './output';

const EXAMPLES = `
Examples:
  ops usage                             of all partners, a line for each environment
  ops usage --partner P100001           by event type
  ops usage --partner P100001 --month 2026-11 --environment live --json`;

/** `ops usage` */
export function addUsageCommand(program: Command, deps: OpsDeps): void {
  const usage = program
    .command('usage')
    .description(
      'Quotes and deliveries of a UTC month, and what partners had sent again themselves; of one by event type, with what is left of the limit of tests.',
    )
    .option('--partner <partner>', 'of this partner only, by event type', idOf('partner'))
    .option('--month <month>', 'such as 2026-11; default: the current one', monthArgument)
    .addOption(environmentOption('of this environment only'))
    .addHelpText('after', EXAMPLES);
  handle<{ month?: string }>(usage, deps, async (call) => {
    const { partner: partnerId, environment } = call.options;
    if (partnerId !== undefined) await existingPartner(call.db, partnerId);
    const month = call.options.month ?? (await currentMonth(call.db));
    const wanted = { partnerId, month, environment };
    const counts = await monthlyUsage(call.db, wanted);
    const quotes = await countQuotes(call.db, wanted);
    const own = await selfService(call.db, wanted);
    return partnerId === undefined
      ? ofAll(month.slice(0, 7), counts, quotes, own)
      : ofOne({ ...wanted, partnerId, month: month.slice(0, 7) }, counts, quotes, own);
  });
}

function ofOne(
  {
    partnerId,
    month,
    environment,
  }: { partnerId: string; month: string; environment: KeyEnvironment | undefined },
  found: readonly MonthlyCount[],
  given: readonly QuoteCount[],
  own: readonly SelfService[],
): Answer {
  const environments = environment === undefined ? (['live', 'sandbox'] as const) : [environment];
  const answer = listed(withTests(partnerId, found, environments), view, {
    environment: 'environment',
    event: 'event_type',
    delivered: 'delivered',
    failed: 'failed',
    reserved: 'reserved',
    limit: 'limit',
    left: 'left',
  });
  const quotes = environments.map(
    (one) => [one, given.find((count) => count.environment === one)?.quotes ?? 0] as const,
  );
  const said = quotes.map(([one, count]) => `${count} ${one}`).join(', ');
  return {
    json: {
      partner_id: partnerId,
      month,
      quotes: Object.fromEntries(quotes),
      counts: answer.json,
      sent_again: Object.fromEntries(own.map((one) => [one.environment, sentAgain(one)])),
    },
    ...withTables(
      (textOf) =>
        `${partnerId}, ${month} (UTC). Quotes: ${said}. Deliveries:\n${textOf(answer)}${own.map(sentAgainText).join('')}`,
    ),
  };
}

/** What a partner has had sent again under its own keys. */
const sentAgain = ({ resends, recoveries, recovered }: Omit<SelfService, 'partnerId' | 'environment'>) => ({
  resends,
  recoveries,
  recovered,
});

const sentAgainText = ({ environment, resends, recoveries, recovered }: SelfService) =>
  `\nSent again by itself, ${environment}: ${resends} resends, ${recoveries} recoveries of ${recovered} notifications.`;

const NOTHING = { resends: 0, recoveries: 0, recovered: 0 };

/** A line for each partner and environment that had any. */
function ofAll(
  month: string,
  counts: readonly MonthlyCount[],
  given: readonly QuoteCount[],
  again: readonly SelfService[],
): Answer {
  const keys = new Set(
    [...counts, ...given, ...again].map(({ partnerId, environment }) => `${partnerId} ${environment}`),
  );
  const lines = [...keys].toSorted().map((key) => {
    const [partner_id = '', environment = ''] = key.split(' ');
    const mine = (one: { partnerId: string; environment: string }) =>
      one.partnerId === partner_id && one.environment === environment;
    const own = counts.filter(mine);
    const sum = (name: 'delivered' | 'failed') => own.reduce((total, one) => total + one[name], 0);
    const quotes = given.find(mine)?.quotes ?? 0;
    const ended = { delivered: sum('delivered'), failed: sum('failed') };
    return { partner_id, environment, quotes, ...ended, ...sentAgain(again.find(mine) ?? NOTHING) };
  });
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
  return {
    json: { month, partners: answer.json },
    ...withTables((textOf) => `${month} (UTC):\n${textOf(answer)}`),
  };
}

/** The limit of tests is worth a line even when none was sent. */
function withTests(
  partnerId: string,
  counts: readonly MonthlyCount[],
  environments: readonly KeyEnvironment[],
): readonly MonthlyCount[] {
  const none = { eventType: TEST_EVENT_TYPE, delivered: 0, failed: 0, reserved: 0 };
  return environments.flatMap((environment) => {
    const own = counts.filter((one) => one.environment === environment);
    const tested = own.some(({ eventType }) => eventType === TEST_EVENT_TYPE);
    return tested ? own : [...own, { partnerId, environment, ...none }];
  });
}

/** What is under way holds a place. */
function limitOf({ eventType, delivered, reserved }: MonthlyCount) {
  if (eventType !== TEST_EVENT_TYPE) return { limit: null, left: null };
  return { limit: TEST_LIMIT_PER_MONTH, left: Math.max(TEST_LIMIT_PER_MONTH - delivered - reserved, 0) };
}

function view(one: MonthlyCount) {
  const { partner_id: _, ...rest } = snakeCased(one);
  return { ...rest, ...limitOf(one) };
}
