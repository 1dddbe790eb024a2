import type { Database } from '../../db/postgres/connect';
import { until } from './delivery';
import { storeStatus } from './notifications';
import type { Received, WebhookReceiver } from './webhook-receiver';

/** Stored, and not yet seen by the receiver. */
const MOST_UNDER_WAY = 16;

/** Status notifications, stored one after the other to partners in turn, as fast as they arrive. */
export function startTraffic(database: Database, receiver: WebhookReceiver, partnerIds: readonly string[]) {
  const stored = new Map<string, { phase: string; partnerId: string }>();
  let phase = 'before';
  let stopped = false;
  let fault: unknown;
  const eventOf = ({ headers }: Received) => String(headers['webhook-id']);
  const underWay = () => {
    const arrived = new Set(receiver.received.map(eventOf));
    return [...stored.keys()].filter((id) => !arrived.has(id)).length;
  };
  let storing: Promise<void> = Promise.resolve();
  const storeOne = async (partnerId: string) => {
    const now = phase;
    const { eventId } = await storeStatus(database, { partnerId });
    stored.set(eventId, { phase: now, partnerId });
  };
  const running = (async () => {
    for (let nth = 0; !stopped; nth += 1) {
      const partnerId = partnerIds[nth % partnerIds.length] ?? '';
      storing = storeOne(partnerId);
      await storing;
      while (!stopped && underWay() >= MOST_UNDER_WAY) await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })().catch((error: unknown) => (fault = error));
  const of = (wanted: string) =>
    receiver.received.flatMap((request) => {
      const one = stored.get(eventOf(request));
      return one?.phase === wanted ? [{ request, partnerId: one.partnerId }] : [];
    });
  return {
    /** Names what is stored from now on, and waits until all that was stored before has arrived. */
    async enter(next: string) {
      phase = next;
      await storing;
      const earlier = [...stored].filter(([, one]) => one.phase !== next).map(([id]) => id);
      const arrived = () => new Set(receiver.received.map(eventOf));
      await until(() => earlier.every((id) => arrived().has(id)), `all from before ${next}`, 60_000);
    },
    /** What arrived of a phase, with whose it is. A delivery counts for the phase it was stored in. */
    of,
    /** Names what is stored from now on, and waits until so much of it has arrived. */
    async during(next: string, arrivals: number) {
      phase = next;
      await until(() => of(next).length >= arrivals, `${arrivals} deliveries of ${next}`, 60_000);
    },
    /** Stores nothing more, and waits until all has arrived. @returns how much was stored */
    async stop() {
      stopped = true;
      await running;
      if (fault !== undefined) throw fault;
      await until(() => underWay() === 0, 'the last deliveries', 60_000);
      return stored.size;
    },
  };
}
