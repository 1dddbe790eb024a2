import { ulid } from 'ulid';
import { median } from '../rounds';
import type { Database } from '../../db/postgres/connect';
import { SOMETHING_IS_DUE } from '../../db/notifications/channels';
import { hint } from '../../db/postgres/hints';
import { notifications } from '../../db/schema';
import { benchEvent } from './event';
import { storeChange } from './feed';
import type { Moment } from './messages';
import { pause, settled } from './rounds';
import type { Stage } from './stage';

/** What one partner's backlog costs another: medians of the pairs. */
export interface Overtake {
  /** Notifications that were due to the one partner. */
  readonly due: number;
  /** How many of them were still due after the last of the others had arrived. */
  readonly left: number;
  /** The others' without it, one at a time, from commit to arrival, ms: the median. */
  readonly withoutMs: number;
  /** The same with it. */
  readonly medianMs: number;
  readonly worstMs: number;
}

export interface OvertakeOptions {
  readonly pairs: number;
  readonly due: number;
  /** Notifications of the others in each half of a pair. */
  readonly singles: number;
}

/** Stored together: more parameters than these take no statement holds. */
const ROWS_AT_ONCE = 500;
const PATIENCE_MS = 60_000;

/** Sends notifications to others, one after the other, without and with thousands due to one partner, whose endpoint answers as fast as ever. */
export async function measureOvertake(
  stage: Stage,
  { pairs, due, singles }: OvertakeOptions,
): Promise<Overtake> {
  const found: Omit<Overtake, 'due'>[] = [];
  for (let at = 0; at < pairs; at += 1) {
    const { medianMs: withoutMs } = await others(stage, singles);
    await storeBacklog(stage.database, stage.slow.partnerId, due);
    const times = await others(stage, singles);
    found.push({ ...times, withoutMs, left: await dropBacklog(stage) });
  }
  const of = (pick: (pair: Omit<Overtake, 'due'>) => number) => median(found.map(pick));
  return {
    due,
    left: of(({ left }) => left),
    withoutMs: of(({ withoutMs }) => withoutMs),
    medianMs: of(({ medianMs }) => medianMs),
    worstMs: of(({ worstMs }) => worstMs),
  };
}

async function others({ database, receivers, partners }: Stage, singles: number) {
  receivers.arrivals.clear();
  receivers.onArrival = () => undefined;
  const times: number[] = [];
  for (let at = 0; at < singles; at += 1) {
    const moment = await storeChange(database, partners[at % partners.length] ?? '');
    times.push((await arrival(receivers.arrivals, moment)) - moment[1]);
  }
  return { medianMs: median(times), worstMs: Math.max(...times) };
}

/** Cancels what is due: to send it all would take a minute and a half, and say nothing more. @returns how much it was. */
async function dropBacklog(stage: Stage): Promise<number> {
  const { database } = stage;
  const [row] = await database.sql<{ left: number }[]>`
    select /* bench */ count(*)::int as left from notifications where state = 'pending'`;
  await database.sql`update /* bench */ notifications
    set state = 'cancelled', end_reason = 'operator', ended_at = service_now()
    where state = 'pending' and due_at <= service_now()`;
  await settled(stage);
  return row?.left ?? NaN;
}

async function arrival(arrivals: ReadonlyMap<string, number>, [eventId]: Moment): Promise<number> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const at = arrivals.get(eventId);
    if (at !== undefined) return at;
    if (performance.now() > deadline) throw new Error(`${eventId} has not arrived within a minute`);
    await pause(2);
  }
}

/** All become due with one commit. */
async function storeBacklog({ db }: Database, partnerId: string, count: number): Promise<void> {
  await db.transaction(async (tx) => {
    for (let stored = 0; stored < count; stored += ROWS_AT_ONCE) {
      const rows = Array.from({ length: Math.min(ROWS_AT_ONCE, count - stored) }, () => {
        const [eventId, applicationId] = [`evt_${ulid()}`, `app_${ulid()}`];
        const body = benchEvent(eventId, applicationId);
        const { event_type: eventType, environment, sequence } = body;
        const merchantReference = body.data.merchant_reference;
        const ids = { notificationId: `ntf_${ulid()}`, eventId, applicationId, partnerId, merchantReference };
        return { ...ids, eventType, environment, sequence, body: JSON.stringify(body) };
      });
      await tx.insert(notifications).values(rows);
    }
    hint(tx, SOMETHING_IS_DUE);
  });
}
