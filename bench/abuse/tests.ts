import { randomUUID } from 'node:crypto';
import { ulid } from 'ulid';
import { insertTestNotification } from '../../db/notifications/enqueue-test';
import { TEST_EVENT_TYPE } from '../../contracts/webhook-event';
import { testEvent } from '../../contracts/test-event';
import { othersP95 } from '../delivery/isolation';
import { pause, settled } from '../delivery/rounds';
import type { Stage } from '../delivery/stage';
import { median } from '../rounds';

/** What a partner whose endpoint fails, and who asks for tests without end, costs the others. */
export interface TestFigures {
  /** The others' p95 from commit to arrival, in milliseconds. */
  readonly withoutMs: number;
  readonly withMs: number;
  /** Median over the pairs of with / without. */
  readonly ratio: number;
  /** Tests that were asked for, that were stored (the month's quota refuses the others), and attempts that were made. */
  readonly asked: number;
  readonly stored: number;
  readonly attempts: number;
}

/** Far above the 100 calls a minute that a key has. */
const ASK_EVERY_MS = 100;
const OTHERS = { count: 250, everyMs: 40 };

/** The others' latency with and without that partner, in turn. */
export async function measureTests(
  stage: Stage,
  pairs: number,
  say: (line: string) => void,
): Promise<TestFigures> {
  const { database, receivers, slow } = stage;
  const found: { without: number; with: number }[] = [];
  let [asked, stored] = [0, 0];
  receivers.fail([slow.host]);
  // The first after the warm-up is three times as fast as any later one.
  await othersP95(stage, OTHERS);
  for (let nth = 0; nth < pairs; nth += 1) {
    const halves: (() => Promise<number>)[] = [
      () => othersP95(stage, OTHERS),
      async () => {
        let asking = true;
        const asker = (async () => {
          while (asking) {
            asked += 1;
            if ((await ask(stage)).kind === 'stored') stored += 1;
            await pause(ASK_EVERY_MS);
          }
        })();
        await pause(1_000);
        const beside = await othersP95(stage, OTHERS);
        asking = false;
        await asker;
        await clear(stage);
        return beside;
      },
    ];
    const order = nth % 2 === 0 ? [0, 1] : [1, 0];
    const took: number[] = [];
    for (const half of order) took[half] = (await halves[half]?.()) ?? NaN;
    const [without = NaN, beside = NaN] = took;
    found.push({ without, with: beside });
    say(
      `others' p95 ${without.toFixed(1)} ms without, ${beside.toFixed(1)} ms beside ${asked} tests asked for so far, ${stored} stored`,
    );
  }
  receivers.fail([]);
  const [row] = await database.sql<{ attempts: number }[]>`
    select /* bench */ count(*)::int as attempts from delivery_attempts a join notifications n using (notification_id)
    where n.partner_id = ${slow.partnerId}`;
  return {
    withoutMs: median(found.map((pair) => pair.without)),
    withMs: median(found.map((pair) => pair.with)),
    ratio: median(found.map((pair) => pair.with / pair.without)),
    asked,
    stored,
    attempts: row?.attempts ?? NaN,
  };
}

/** What waits would take minutes, and say nothing more. */
async function clear(stage: Stage): Promise<void> {
  const { database, slow } = stage;
  await database.sql`update /* bench */ notifications
    set state = 'cancelled', end_reason = 'operator', ended_at = service_now(), reserved_month = null, taken_at = null
    where state = 'pending' and partner_id = ${slow.partnerId}`;
  await settled(stage);
  await database.sql`update /* bench */ monthly_counts set reserved = 0`;
}

function ask({ database, slow }: Stage) {
  const eventId = `evt_${ulid()}`;
  return insertTestNotification(database.db, {
    notificationId: `ntf_${ulid()}`,
    eventId,
    eventType: TEST_EVENT_TYPE,
    partnerId: slow.partnerId,
    environment: 'live',
    body: JSON.stringify(testEvent({ eventId, environment: 'live', createdAt: new Date(), lender: null })),
    requestId: `rq_${randomUUID()}`,
  });
}
