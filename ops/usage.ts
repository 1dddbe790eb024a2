import type { Command } from 'commander';
import { TEST_EVENT_TYPE } from '../contracts/webhook-event';
import type { KeyEnvironment } from '../db/keys/key';
import { findPartner } from '../db/catalogue/partners';
import { Refused } from '../db/refused';
import { TEST_LIMIT_PER_MONTH } from '../db/notifications/quota';
import { currentMonth } from '../db/notifications/quota';
import { monthlyUsage, type MonthlyCount } from '../db/notifications/usage';
import { environmentOption, month as monthArgument } from './arguments';
import { environmentOf, handle, textOption, type OpsDeps } from './call';
import { listed } from './output';

const EXAMPLES = `
Examples:
  ops usage --partner P100001
  ops usage --partner P100001 --month 2026-11 --environment live --json`;

/** `ops usage` */
export function addUsageCommand(program: Command, deps: OpsDeps): void {
  const usage = program
    .command('usage')
    .description(
      'Deliveries of a UTC month by environment and event type, and what is left of the limit of tests.',
    )
    .requiredOption('--partner <partner>', 'whose')
    .option('--month <month>', 'such as 2026-11; default: the current one', monthArgument)
    .addOption(environmentOption('of this environment only'))
    .addHelpText('after', EXAMPLES);
  handle(usage, deps, async (call) => {
    const partnerId = textOption(call, 'partner') ?? '';
    const environment = environmentOf(call);
    if ((await findPartner(call.db, partnerId)) === null) {
      throw new Refused('not_found', `Partner ${partnerId} does not exist.`);
    }
    const month = textOption(call, 'month') ?? (await currentMonth(call.db));
    const wanted = { partnerId, month, environment };
    const environments = environment === undefined ? (['live', 'sandbox'] as const) : [environment];
    const counts = withTests(await monthlyUsage(call.db, wanted), environments);
    const { json, text } = listed(counts, view, {
      environment: 'environment',
      event: 'event_type',
      delivered: 'delivered',
      failed: 'failed',
      reserved: 'reserved',
      limit: 'limit',
      left: 'left',
    });
    const named = month.slice(0, 7);
    return {
      json: { partner_id: partnerId, month: named, counts: json },
      text: `${partnerId}, ${named} (UTC):\n${text}`,
    };
  });
}

/** The limit of tests is worth a line even when none was sent. */
function withTests(
  counts: readonly MonthlyCount[],
  environments: readonly KeyEnvironment[],
): readonly MonthlyCount[] {
  const none = { eventType: TEST_EVENT_TYPE, delivered: 0, failed: 0, reserved: 0 };
  return environments.flatMap((environment) => {
    const own = counts.filter((one) => one.environment === environment);
    const tested = own.some(({ eventType }) => eventType === TEST_EVENT_TYPE);
    return tested ? own : [...own, { environment, ...none }];
  });
}

/** What is under way holds a place. */
function limitOf({ eventType, delivered, reserved }: MonthlyCount) {
  if (eventType !== TEST_EVENT_TYPE) return { limit: null, left: null };
  return { limit: TEST_LIMIT_PER_MONTH, left: Math.max(TEST_LIMIT_PER_MONTH - delivered - reserved, 0) };
}

const view = (one: MonthlyCount) => ({
  environment: one.environment,
  event_type: one.eventType,
  delivered: one.delivered,
  failed: one.failed,
  reserved: one.reserved,
  ...limitOf(one),
});
