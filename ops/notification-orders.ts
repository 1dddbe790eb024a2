import type { Command } from 'commander';
import type { Change } from '../db/audit/change-log';
import { existingEndpoint } from '../db/endpoints/endpoints';
import { cancelNotification, notePause, noteResume } from '../db/notifications/attempt';
import { findNotification, listUnderWay, whatTheyDo, type UnderWay } from '../db/notifications/operator';
import { countUnderWay } from '../db/notifications/hold';
import { RECOVERED_PER_SECOND } from '../db/notifications/recovery';
import { resendNotification } from '../db/notifications/resend';
import { Refused } from '../db/refused';
import { pauseUntil } from '../timing/timing';
import { environmentOption, perSecondOption } from './arguments';
import { changeAndLog, handle, type Call, type OpsDeps } from './call';
import { idOf, idsOf, withId } from './ids';
import { nowTexts } from './notification-view';
import { existing, listed, snakeCased, type Answer } from './output';
import type { DeliveryOrder } from './temporal';

/** Orders that are also given to many: deliveries of the kind to which they make a difference. */
const ORDERS = {
  'retry-now': {
    kind: 'retrying',
    description: 'Wait no longer for the next attempt; also of one that is paused.',
    said: 'makes its next attempt now; one that is under way is finished first',
  },
  pause: {
    kind: 'retrying',
    description: 'Make no attempt until it is resumed.',
    said: 'makes no attempt until it is resumed; one that is under way is finished first',
  },
  resume: {
    kind: 'paused',
    description: 'Continue a paused one with the rest of its retry ladder.',
    said: 'continues where it was paused',
  },
} as const;
const KINDS = { retrying: 'wait for their next attempt', paused: 'are paused' } as const;

type Verb = keyof typeof ORDERS;
const orderOf = (verb: Verb | 'cancel'): DeliveryOrder => (verb === 'retry-now' ? 'retryNow' : verb);
type OrderCall = Call<{ endpoint?: string }>;

type Delivery = Omit<UnderWay, 'environment'>;

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
        const delivery = await orderOne(call, verb, id);
        const left = await leftRunning(call, verb, [delivery.partnerId]);
        return orderAnswer(delivery, verb, `${ORDERS[verb].said}.${left}`);
      }
      return orderEach(call, verb, [...new Set(ids)]);
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
    if (await giveOrder(call, delivery, 'cancel')) {
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

const orderAnswer = ({ notificationId, generation }: Delivery, verb: Verb | 'cancel', said: string) => ({
  json: { ...snakeCased({ notificationId, generation }), order: orderOf(verb) },
  text: `Notification ${notificationId} ${said}`,
});

/** @throws Refused for one that takes no order now, saying why. */
async function orderOne(call: Call, verb: Verb, wanted: string | Delivery, row?: Logged | null) {
  const delivery = typeof wanted === 'string' ? await deliveryUnderWay(call, wanted) : wanted;
  if (await giveOrder(call, delivery, verb, row)) return delivery;
  const why = 'it has just ended, or is started anew within a minute or so';
  throw new Refused(
    'conflict',
    `Notification ${delivery.notificationId} has no workflow at the moment: ${why}.`,
  );
}

/** The order to all deliveries of a partner or an endpoint: counts them, and gives it with `--yes`. */
async function orderAll(call: OrderCall, verb: Verb): Promise<Answer> {
  const owner = await ownerOf(call);
  const found = await listUnderWay(call.db, owner, ORDERS[verb].kind);
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
    text: `${found.length} deliveries ${whose} ${KINDS[ORDERS[verb].kind]}; ${rest}.${left}`,
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
 * Gives the order to one after the other, at the wanted rate; what refuses it is passed over and named.
 * @param once the one row in the change log, written with the first that takes the order; without it each has its own.
 */
async function orderEach(call: Call, verb: Verb, wanted: readonly (string | Delivery)[], once?: Logged) {
  const { deps } = call;
  const interrupted = deps.interruptible();
  const perSecond = call.options.perSecond ?? RECOVERED_PER_SECOND;
  const startedAt = performance.now();
  let printedAt = startedAt;
  const left: { message: string }[] = [];
  /** Of those that took the order. */
  const partnerIds: string[] = [];
  const progress = () =>
    `${partnerIds.length} of ${wanted.length} given${left.length === 0 ? '' : `, ${left.length} passed over`}`;
  for (const [at, one] of wanted.entries()) {
    await pauseUntil(startedAt + (at / perSecond) * 1_000, interrupted);
    if (interrupted.aborted)
      throw new Refused('conflict', `Interrupted: ${progress()}. The same command continues with the rest.`);
    try {
      const row = once && (partnerIds.length === 0 ? once : null);
      partnerIds.push((await orderOne(call, verb, one, row)).partnerId);
    } catch (error) {
      if (!(error instanceof Refused)) {
        deps.err(`${progress()} before this:\n`);
        throw error;
      }
      left.push({ message: error.message });
    }
    if (performance.now() - printedAt < PROGRESS_EVERY_MS || call.options.json) continue;
    printedAt = performance.now();
    deps.err(`${progress()}\n`);
  }
  const given = partnerIds.length;
  if (given === 0 && left.length > 0)
    throw new Refused('conflict', left.map(({ message }) => message).join('\n'));
  const rest = listed(left, (one) => one, { 'passed over': 'message' });
  const running = await leftRunning(call, verb, partnerIds);
  return {
    json: { order: verb, found: wanted.length, given, passed_over: rest.json },
    text: (most: number) =>
      `${left.length === 0 ? '' : `${rest.text(most)}\n`}${verb}: ${progress()}.${running}`,
  };
}

/** A row of the change log, without who and when. */
type Logged = Pick<Change, 'subject' | 'details'>;

/**
 * Orders a delivery's workflow, and logs it once Temporal took it.
 * @param row null: another row tells of it; absent: a row of its own does
 * @returns false when there is no such workflow
 * @throws TemporalUnreachable
 */
async function giveOrder(call: Call, delivery: Delivery, verb: Verb | 'cancel', row?: Logged | null) {
  const { notificationId: subject, generation, partnerId } = delivery;
  const logged = row === undefined ? { subject, details: snakeCased({ partnerId, generation }) } : row;
  const temporal = await call.deps.temporal();
  return changeAndLog(call, `notifications.${verb}`, async (tx, log) => {
    if (!(await temporal.orderDelivery(delivery, orderOf(verb)))) return false;
    if (logged !== null) await log(logged.subject, logged.details);
    if (verb === 'pause') await notePause(tx, delivery, call.deps.actor);
    if (verb === 'resume') await noteResume(tx, delivery);
    return true;
  });
}

/** @throws Refused for one that no workflow works on, saying what to do instead. */
async function deliveryUnderWay({ db, deps }: Call, notificationId: string): Promise<Delivery> {
  const found = existing(await findNotification(db, notificationId), `Notification ${notificationId}`);
  const { state, generation, partnerId } = found;
  if (state === 'started') return { notificationId, generation, partnerId };
  const refused = (why: string) => new Refused('conflict', `Notification ${notificationId} ${why}`);
  if (state === 'held') throw refused('is held: create or enable an endpoint, then resend it.');
  if (state !== 'queued') throw refused(`has ended (${state}): resend it instead.`);
  const now = await whatTheyDo(db, [found]);
  throw refused(`is queued: ${nowTexts(now(found), deps.now())[1]}.`);
}
