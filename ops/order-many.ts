import type { KeyEnvironment } from '../db/keys/key';
import { existingPartner } from '../db/catalogue/partners';
import { existingEndpoint } from '../db/endpoints/endpoints';
import { RECOVERED_PER_SECOND } from '../db/notifications/recovery';
import { listUnderWay, type UnderWayKind } from '../db/notifications/operator';
import { Refused } from '../db/refused';
import { pauseUntil } from '../timing/pause-until';
import type { Call, DeliveryOrder } from './call';
import { deliveryUnderWay, giveOrder, type Delivery } from './give-order';
import { listed, type Answer } from './output';

/** Which deliveries an order to many is for: an order for those that it would change nothing of is none. */
const FOR: Readonly<Record<Exclude<DeliveryOrder, 'cancel'>, { kind: UnderWayKind; what: string }>> = {
  retryNow: { kind: 'retrying', what: 'wait for their next attempt' },
  pause: { kind: 'retrying', what: 'wait for their next attempt' },
  resume: { kind: 'paused', what: 'are paused' },
};

export interface ManyOrder {
  /** As the command line has it: `retry-now`. */
  readonly name: string;
  readonly order: keyof typeof FOR;
}

/** How often people are told how far it is, in milliseconds. */
const TOLD_EVERY_MS = 2_000;

/** The order to all deliveries of a partner or an endpoint: counts them, and gives it with `--yes`. */
export async function orderAll(call: Call<{ endpoint?: string }>, wanted: ManyOrder): Promise<Answer> {
  const owner = await ownerOf(call);
  const found = await listUnderWay(call.db, owner, FOR[wanted.order].kind);
  const whose = `of ${owner.partnerId}${owner.environment === null ? '' : ` in ${owner.environment}`}`;
  const counted = `${found.length} deliveries ${whose} ${FOR[wanted.order].what}`;
  if (!call.options.yes || call.options.dryRun || found.length === 0) {
    const rest = found.length === 0 ? 'nothing to do' : 'no order was given: add --yes';
    return {
      json: { dry_run: true, order: wanted.name, found: found.length },
      text: `${counted}; ${rest}.`,
    };
  }
  return giveAll(
    call,
    wanted,
    found.map((one) => async () => one),
  );
}

/** The order to several that are named. */
export function orderNamed(call: Call, wanted: ManyOrder, ids: readonly string[]): Promise<Answer> {
  return giveAll(
    call,
    wanted,
    [...new Set(ids)].map((id) => () => deliveryUnderWay(call.db, id)),
  );
}

async function giveAll(
  call: Call,
  { name, order }: ManyOrder,
  wanted: readonly (() => Promise<Delivery>)[],
): Promise<Answer> {
  const { deps } = call;
  const interrupted = deps.interruptible();
  const perSecond = call.options.perSecond ?? RECOVERED_PER_SECOND;
  const startedAt = performance.now();
  let [given, toldAt] = [0, startedAt];
  const left: { message: string }[] = [];
  const how = () =>
    `${given} of ${wanted.length} given${left.length === 0 ? '' : `, ${left.length} passed over`}`;
  for (const [at, find] of wanted.entries()) {
    await pauseUntil(startedAt + (at / perSecond) * 1_000, interrupted);
    if (interrupted.aborted) {
      throw new Refused('conflict', `Interrupted: ${how()}. The same command goes on with the rest.`);
    }
    try {
      const delivery = await find();
      if (await giveOrder(call, delivery, name, order)) given += 1;
      else
        left.push({ message: `Notification ${delivery.notificationId} has just ended, or is started anew.` });
    } catch (error) {
      if (!(error instanceof Refused)) {
        deps.err(`${how()} before this:\n`);
        throw error;
      }
      left.push({ message: error.message });
    }
    if (performance.now() - toldAt < TOLD_EVERY_MS || call.options.json) continue;
    toldAt = performance.now();
    deps.err(`${how()}\n`);
  }
  const rest = listed(left, (one) => one, { 'passed over': 'message' });
  if (given === 0 && left.length > 0) {
    throw new Refused('conflict', left.map(({ message }) => message).join('\n'));
  }
  return {
    json: { order: name, found: wanted.length, given, passed_over: rest.json },
    text: `${left.length === 0 ? '' : `${rest.text}\n`}${name}: ${how()}.`,
  };
}

async function ownerOf(
  call: Call<{ endpoint?: string }>,
): Promise<{ readonly partnerId: string; readonly environment: KeyEnvironment | null }> {
  const { endpoint: endpointId, partner: partnerId, environment = null } = call.options;
  if (endpointId !== undefined) {
    if (partnerId !== undefined || environment !== null) nameOne();
    return existingEndpoint(call.db, endpointId);
  }
  if (partnerId === undefined) return nameOne();
  await existingPartner(call.db, partnerId);
  return { partnerId, environment };
}

function nameOne(): never {
  throw new Refused(
    'invalid',
    'Name notifications by their ids, or all of one --partner (with --environment) or one --endpoint.',
  );
}
