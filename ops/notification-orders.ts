import type { Command } from 'commander';
import type { Change } from '../db/audit/change-log';
import { existingEndpoint } from '../db/endpoints/endpoints';
import { cancelNotification } from '../db/notifications/attempt';
import { countUnderWay } from '../db/notifications/hold';
import { findNotification, whatTheyDo } from '../db/notifications/operator';
import { listToOrder, orderDeliveries, type Ordered } from '../db/notifications/orders';
import { RECOVERED_PER_SECOND } from '../db/notifications/recovery';
import { resendNotification } from '../db/notifications/resend';
import { Refused } from '../db/refused';
import { pauseUntil } from '../timing/timing';
import { environmentOption, perSecondOption } from './arguments';
import { changeAndLog, handle, type Call, type OpsDeps } from './call';
import { idOf, idsOf, withId } from './ids';
import { nowTexts } from './notification-view';
import { existing, listed, snakeCased, type Answer } from './output';
import { TemporalUnreachable } from './exit-codes';

/** Orders that are also given to many: all to which they make a difference. */
const ORDERS = {
  'retry-now': {
    order: 'retry_now',
    whom: 'wait for their next attempt',
    description: 'Wait no longer for the next attempt; also of one that is paused.',
    said: 'makes its next attempt now; one that is under way is finished first',
  },
  pause: {
    order: 'pause',
    whom: 'wait for their next attempt',
    description: 'Make no attempt until it is resumed.',
    said: 'makes no attempt until it is resumed; one that is under way is finished first',
  },
  resume: {
    order: 'resume',
    whom: 'are paused',
    description: 'Continue a paused one with the rest of its retry ladder.',
    said: 'continues where it was paused',
  },
} as const;

type Verb = keyof typeof ORDERS;
type OrderCall = Call<{ endpoint?: string }>;

/** Orders of one transaction. A failure leaves at most so many to the reconciler, which wakes them within 90 s. */
const BATCH = 500;
/** The wakes of a transaction take no longer, so that the reconciler does not take them for lost. */
const BATCH_SECONDS = 10;

export function addNotificationOrders(notifications: Command, deps: OpsDeps): void {
  for (const verb of Object.keys(ORDERS) as Verb[]) {
    const command = notifications
      .command(verb)
      .argument('[notification-ids...]', '', idsOf('notification'))
      .description(
        `${ORDERS[verb].description} For one, several, or all of a partner or endpoint; those are counted first.`,
      )
      .option('--partner <partner>', 'all deliveries of this partner', idOf('partner'))
      .addOption(environmentOption('with --partner: in this environment only'))
      .option('--endpoint <endpoint-id>', 'all deliveries to this endpoint', idOf('endpoint'))
      .option('--dry-run', 'only count, which is what it does without --yes too')
      .option('--yes', 'give the order to all of them')
      .addOption(perSecondOption());
    handle<{ endpoint?: string }>(command, deps, async (call, ...operands) => {
      const [ids = []] = operands as unknown as [string[] | undefined];
      if (ids.length === 0) return orderAll(call, verb);
      const { partner, endpoint, environment, dryRun } = call.options;
      if ([partner, endpoint, environment, dryRun].some((option) => option !== undefined))
        throw new Refused('invalid', 'Options that choose or count are for orders without ids.');
      const [id = '', ...more] = ids;
      if (more.length === 0) {
        const [delivery] = await give(call, verb, [id]);
        if (delivery === undefined) throw await refusalOf(call, id);
        const away = await wake(call, delivery);
        const left = await leftRunning(call, verb, [delivery.partnerId]);
        return orderAnswer(delivery, ORDERS[verb].order, `${ORDERS[verb].said}.${awayText(away)}${left}`);
      }
      return orderEach(call, verb, [...new Set(ids)].toSorted());
    });
  }

  const cancel = withId(notifications.command('cancel'), 'notification', '<notification-id>').description(
    'Make no further attempt, for good; resend takes it up again.',
  );
  handle(cancel, deps, async (call, notificationId = '') => {
    const cancelled = {
      json: { notification_id: notificationId, state: 'cancelled' },
      text: `Notification ${notificationId} is cancelled.`,
    };
    const found = await cancelInDatabase(call, notificationId, null);
    if (found.kind === 'cancelled') return cancelled;
    const { generation, partnerId } = found;
    const delivery = { notificationId, generation, partnerId };
    const temporal = await deps.temporal();
    if (await temporal.cancelDelivery(delivery)) {
      await changeAndLog(call, 'notifications.cancel', (_tx, log) =>
        log(notificationId, snakeCased({ partnerId, generation })),
      );
      const said = 'makes no further attempt; one that is under way is finished first.';
      return orderAnswer(delivery, 'cancel', said);
    }
    // No workflow will end it, so this command does, unless it has been started as another generation.
    if ((await cancelInDatabase(call, notificationId, generation)).kind === 'cancelled') return cancelled;
    throw new Refused('conflict', `Notification ${notificationId} was just started anew: cancel it again.`);
  });

  const resend = withId(notifications.command('resend'), 'notification', '<notification-id>').description(
    'Send one that has ended or is held once more, with the same event id.',
  );
  handle(resend, deps, async (call, notificationId = '') => {
    const { was, generation } = await changeAndLog(call, 'notifications.resend', async (tx, log) => {
      const done = await resendNotification(tx, notificationId);
      const details = { partner_id: done.was.partnerId, generation: done.generation, was: done.was.state };
      await log(notificationId, details);
      return done;
    });
    const { eventId, state } = was;
    return {
      json: { notification_id: notificationId, event_id: eventId, generation, was: state, state: 'queued' },
      text: `Notification ${notificationId} was ${state} and is sent again, as event ${eventId}.`,
    };
  });
}

function cancelInDatabase(call: Call, notificationId: string, deadGeneration: number | null) {
  return changeAndLog(call, 'notifications.cancel', async (tx, log) => {
    const done = await cancelNotification(tx, notificationId, deadGeneration);
    if (done.kind === 'cancelled') await log(notificationId, { partner_id: done.partnerId, was: done.was });
    return done;
  });
}

const orderAnswer = ({ notificationId, generation }: Ordered, order: string, said: string) => ({
  json: { ...snakeCased({ notificationId, generation }), order },
  text: `Notification ${notificationId} ${said}`,
});

/** A row of the change log, without who and when. */
type Logged = Pick<Change, 'subject' | 'details'>;

/**
 * Gives an order to these, and logs it, in one transaction.
 * @param row null: another row tells of it; absent: a row for each does
 * @returns those that took it
 */
const give = (call: Call, verb: Verb, ids: readonly string[], row?: Logged | null): Promise<Ordered[]> =>
  changeAndLog(call, `notifications.${verb}`, async (tx, log) => {
    const ordered = await orderDeliveries(tx, ORDERS[verb].order, ids, call.deps.actor);
    const rows = ordered.map(({ notificationId: subject, ...rest }) => ({
      subject,
      details: snakeCased(rest),
    }));
    const logged = row === undefined || ordered.length === 0 ? rows : row === null ? [] : [row];
    for (const { subject, details } of logged) await log(subject, details);
    return ordered;
  });

/** @returns why Temporal could not be asked; the order is given all the same */
async function wake({ deps }: Call, delivery: Ordered): Promise<TemporalUnreachable | null> {
  try {
    await (await deps.temporal()).wakeDelivery(delivery);
    return null;
  } catch (error) {
    if (error instanceof TemporalUnreachable) return error;
    throw error;
  }
}

const awayText = (away: TemporalUnreachable | null) =>
  away === null ? '' : ` ${away.message} The order counts within 90 s after it is back.`;

/** The order to all deliveries of a partner or an endpoint: counts them, and gives it with `--yes`. */
async function orderAll(call: OrderCall, verb: Verb): Promise<Answer> {
  const owner = await ownerOf(call);
  const { order, whom } = ORDERS[verb];
  const found = await listToOrder(call.db, owner, order);
  if (call.options.yes && !call.options.dryRun && found.length > 0) {
    const { partnerId: partner_id, environment } = owner;
    const details = { partner_id, environment, endpoint_id: call.options.endpoint, deliveries: found.length };
    return orderEach(call, verb, found, { subject: partner_id, details });
  }
  const whose = `of ${owner.partnerId}${owner.environment === null ? '' : ` in ${owner.environment}`}`;
  const rest = found.length === 0 ? 'nothing to do' : 'no order was given: add --yes';
  const left = await leftRunning(call, verb, [owner.partnerId]);
  return {
    json: { dry_run: true, order: verb, found: found.length },
    text: `${found.length} deliveries ${whose} ${whom}; ${rest}.${left}`,
  };
}

/** A pause of single deliveries stops nothing else: says what it leaves, and how to stop that too. */
async function leftRunning({ db }: Call, verb: Verb, partnerIds: readonly string[]): Promise<string> {
  if (verb !== 'pause') return '';
  const lines = [];
  for (const partnerId of new Set(partnerIds)) {
    const { waiting, sending, paused } = await countUnderWay(db, { partnerId, environment: null });
    lines.push(
      `\nNot paused: ${waiting - paused} deliveries of ${partnerId} that wait, ${sending} that are being sent. ` +
        `ops partners pause-deliveries ${partnerId} stops all.`,
    );
  }
  return lines.join('');
}

async function ownerOf({ db, options }: OrderCall) {
  const { endpoint, partner: partnerId, environment = null } = options;
  if (endpoint !== undefined && partnerId === undefined && environment === null)
    return existingEndpoint(db, endpoint);
  if (endpoint !== undefined || partnerId === undefined)
    throw new Refused(
      'invalid',
      'Name notifications by their ids, or all of one --partner (with --environment) or one --endpoint.',
    );
  return { partnerId, environment };
}

/** How often the progress is printed, in milliseconds. */
const PROGRESS_EVERY_MS = 2_000;

/**
 * Gives the order in batches, and wakes one after the other at the wanted rate; what does not take it is
 * passed over and named.
 * @param once the one row in the change log, of the first batch that takes the order; without it each has its own.
 */
async function orderEach(call: Call, verb: Verb, ids: readonly string[], once?: Logged): Promise<Answer> {
  const { deps } = call;
  const interrupted = deps.interruptible();
  const perSecond = call.options.perSecond ?? RECOVERED_PER_SECOND;
  const most = Math.min(BATCH, perSecond * BATCH_SECONDS);
  const startedAt = performance.now();
  let printedAt = startedAt;
  let away: TemporalUnreachable | null = null;
  const given: Ordered[] = [];
  const left: string[] = [];
  const progress = () =>
    `${given.length} of ${ids.length} given${left.length === 0 ? '' : `, ${left.length} passed over`}`;
  for (let at = 0; at < ids.length && !interrupted.aborted; at += most) {
    const batch = ids.slice(at, at + most);
    const ordered = await give(call, verb, batch, once && (given.length === 0 ? once : null));
    const taken = new Set(ordered.map(({ notificationId }) => notificationId));
    left.push(...batch.filter((id) => !taken.has(id)));
    for (const one of ordered) {
      await pauseUntil(startedAt + (given.length / perSecond) * 1_000, interrupted);
      given.push(one);
      if (interrupted.aborted) continue;
      away ??= await wake(call, one);
      if (performance.now() - printedAt < PROGRESS_EVERY_MS || call.options.json) continue;
      printedAt = performance.now();
      deps.err(`${progress()}\n`);
    }
  }
  if (interrupted.aborted)
    throw new Refused('conflict', `Interrupted: ${progress()}. The same command continues with the rest.`);
  const refusals = await Promise.all(left.map((id) => refusalOf(call, id)));
  if (given.length === 0 && left.length > 0)
    throw new Refused('conflict', refusals.map(({ message }) => message).join('\n'));
  const rest = listed(refusals, ({ message }) => ({ message }), { 'passed over': 'message' });
  const running = await leftRunning(
    call,
    verb,
    given.map(({ partnerId }) => partnerId),
  );
  return {
    json: { order: verb, found: ids.length, given: given.length, passed_over: rest.json },
    text: (wide: number) =>
      `${left.length === 0 ? '' : `${rest.text(wide)}\n`}${verb}: ${progress()}.${awayText(away)}${running}`,
  };
}

/** Why one does not take an order now, and what to do instead. */
async function refusalOf({ db, deps }: Call, notificationId: string): Promise<Refused> {
  const found = existing(await findNotification(db, notificationId), `Notification ${notificationId}`);
  const { state } = found;
  const refused = (why: string) => new Refused('conflict', `Notification ${notificationId} ${why}`);
  if (state === 'started') return refused('was just started anew: give the order again.');
  if (state === 'held') return refused('is held: create or enable an endpoint, then resend it.');
  if (state !== 'queued') return refused(`has ended (${state}): resend it instead.`);
  const now = await whatTheyDo(db, [found]);
  return refused(`is queued: ${nowTexts(now(found), await deps.now(db))[1]}.`);
}
