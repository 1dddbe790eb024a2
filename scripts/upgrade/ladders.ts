import { orderDelivery } from '../../runtime/temporal/order-delivery';
import { readConfig } from '../../runtime/config/config';
import { temporalTarget } from '../../runtime/temporal/temporal-target';
import { until } from '../../test/support/delivery';
import { storeStatus } from '../../test/support/notifications';
import { PARTNERS, type UpgradeScene } from './scene';

/** Ladders wait before their second to seventh attempt: from five seconds to five hours. */
const STEPS = 6;
const EACH = 5;
const PAUSED = 3;
const HELD = 5;
const TIMEOUT_MS = 240_000;

/** What waits while Temporal is upgraded. */
export interface Waiting {
  readonly ladders: readonly string[];
  readonly paused: readonly string[];
  readonly held: readonly string[];
}

/** Stores notifications that fail, and moves them to several steps of the real ladder; some are paused, some held. */
export async function setLadders(scene: UpgradeScene): Promise<Waiting> {
  const { database } = scene;
  const store = async (partnerId: string) => (await storeStatus(database, { partnerId })).notificationId;
  const several = async (count: number, partnerId: string) => {
    const ids: string[] = [];
    while (ids.length < count) ids.push(await store(partnerId));
    return ids;
  };
  const failing = await several(STEPS * EACH + PAUSED, PARTNERS.down);
  const held = await several(HELD, PARTNERS.absent);
  const [paused, ladders] = [failing.slice(0, PAUSED), failing.slice(PAUSED)];
  await attempted(scene, failing, 1);
  for (let step = 2; step <= STEPS; step += 1) {
    const further = ladders.filter((_id, at) => at % STEPS >= step - 1);
    await retryNow(scene, further);
    await attempted(scene, further, step);
  }
  for (const id of paused) await scene.ops('notifications', 'pause', id);
  await until(
    async () => (await inState(scene, held, 'held')) === held.length,
    'notifications without an endpoint are held',
    TIMEOUT_MS,
  );
  return { ladders, paused, held };
}

/** Makes the receivers answer, registers the missing endpoint, and orders every next attempt now instead of within three days. */
export async function speedUp(scene: UpgradeScene, { ladders, paused }: Waiting): Promise<void> {
  scene.receivers.down.behave(() => 200);
  await scene.registerAbsent();
  for (const id of paused) await scene.ops('notifications', 'resume', id);
  await retryNow(scene, [...ladders, ...paused]);
}

async function retryNow({ temporal }: UpgradeScene, ids: readonly string[]): Promise<void> {
  const target = temporalTarget(readConfig(temporal.environment));
  for (const notificationId of ids) {
    const answer = await orderDelivery(target, { notificationId, generation: 1 }, 'retryNow');
    // One that waits five seconds may have been tried, and delivered, by itself.
    if (answer.kind === 'unreachable') throw new Error(`retry now of ${notificationId}: ${answer.why}`);
  }
}

async function attempted(
  { database }: UpgradeScene,
  ids: readonly string[],
  attempts: number,
): Promise<void> {
  const there = async () => {
    const [row] = await database.sql<{ left: number }[]>`
      select count(*)::int as left from notifications where notification_id = any(${[...ids]}) and attempts < ${attempts}`;
    return row?.left === 0;
  };
  await until(there, `attempt ${attempts} of ${ids.length} notifications`, TIMEOUT_MS);
}

export async function inState(
  { database }: UpgradeScene,
  ids: readonly string[],
  state: string,
): Promise<number> {
  const [row] = await database.sql<{ count: number }[]>`
    select count(*)::int as count from notifications where notification_id = any(${[...ids]}) and state = ${state}`;
  return row?.count ?? 0;
}
