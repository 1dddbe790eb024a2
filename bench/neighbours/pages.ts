import { Agent, request } from 'undici';
import { issueKey } from '../../db/keys';
import { startOurs } from '../harness/api';
import { pause, type Bench } from '../harness/bench';
import { storePast } from '../harness/past';
import { say } from '../../testbed/say';
import { monotonicMs, spread } from '../harness/rounds';
import type { Stage } from '../harness/stage';
import { deliverQuietly } from './deliveries';
import type { Part, Trouble } from './part';

const CLIENTS = 8;
/** Each client has a key of its own, which may call 100 times a minute. */
const EVERY_MS = 600;
/** Months over which the notifications are spread. */
const MONTHS = 4;

/** A partner with so many notifications, eight clients of which page through them while those of others are delivered. */
export async function pagesPart(
  bench: Bench,
  stage: Stage,
  { rows, seconds }: { rows: number; seconds: number },
): Promise<Part> {
  const { database, postgres, hostile } = stage;
  const [partnerId = ''] = hostile.partners;
  say(`storing ${rows} notifications`);
  const past = { quotes: 0, notifications: rows, quoteMonths: 0, notificationMonths: MONTHS };
  await storePast(database, [partnerId], past);
  const { key } = await database.db.transaction((tx) =>
    issueKey(tx, { partnerId, environment: 'live', expiresInSeconds: null }),
  );
  const api = await startOurs(bench, { databaseUrl: postgres.url, body: '', key });

  const trouble: Trouble = async () => {
    const dispatcher = new Agent({ connections: CLIENTS });
    const times: number[] = [];
    let over = false;
    /** Pages of a hundred, from the newest to the oldest, and again. */
    const client = async (nth: number) => {
      await pause((EVERY_MS * nth) / CLIENTS);
      for (let cursor: string | null = null; !over;) {
        const startedAt = monotonicMs();
        const query = cursor === null ? '' : `&cursor=${cursor}`;
        const url = `http://127.0.0.1:${api.port}/v1/notifications?limit=100${query}`;
        const answer = await request(url, { headers: api.headers, dispatcher });
        const { data } = (await answer.body.json()) as { data: { next_cursor: string | null } };
        if (answer.statusCode !== 200) throw new Error(`a page was answered ${answer.statusCode}`);
        times.push(monotonicMs() - startedAt);
        cursor = data.next_cursor;
        await pause(startedAt + EVERY_MS - monotonicMs());
      }
    };
    const clients = Promise.all(Array.from({ length: CLIENTS }, (_, nth) => client(nth)));
    return async () => {
      over = true;
      await clients;
      await dispatcher.close();
      const { p50_ms: p50, p99_ms: p99 } = spread(times);
      return { page_p50_ms: p50, page_p99_ms: p99, pages: times.length };
    };
  };
  return { quiet: () => deliverQuietly(stage, seconds), trouble };
}
