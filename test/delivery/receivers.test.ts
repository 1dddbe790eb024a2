import { setTimeout as sleep } from 'node:timers/promises';
import { asksToWait, RECEIVERS, RETRY_AFTERS, type Receiver } from '../../dev/receivers';
import { PROTOCOL_REASONS, type ProtocolReason } from '../../domain/delivery-outcome';
import { useWorkers } from '../support/service';
import { until } from '../../testbed/until';
import { standings, storeStatus } from '../../testbed/notifications';

const service = useWorkers();
const { database, receiver } = service;

/** A connection rests for 250 ms after its first answer. */
const RESTED_MS = 300;
const NOW = Date.now();

const table: Readonly<Record<string, Receiver>> = RECEIVERS;
const endOf = (name: string, round: number) => table[name]?.ends[round as 0 | 1] ?? '';

const asking = Object.entries(RETRY_AFTERS).map(([, [text, asksMs]], at) => ({
  path: `/retry-after-${at}`,
  answer: asksToWait(text(NOW)),
  asksMs,
}));
const answers = new Map<string, Receiver['answer']>([
  ...Object.entries(table).map(([name, { answer }]) => [`/${name}`, answer] as const),
  ...asking.map(({ path, answer }) => [path, answer] as const),
]);
/** Ids of events, and what their requests were answered. */
const answered = new Map<string, (number | null)[]>();
const partners = new Map<string, string>();

beforeAll(async () => {
  receiver.behave((_nth, { path, eventId }, wire) => {
    const status = answers.get(path)?.(wire) ?? null;
    answered.set(eventId, [...(answered.get(eventId) ?? []), status]);
    return null;
  });
  for (const path of answers.keys())
    partners.set(path, await service.newPartner(receiver.url.replace('/webhooks', path)));
  // One attempt, so that nothing hides behind a second one.
  await service.start({ DELIVERY_LADDER_SECONDS: '0' });
}, 120_000);

interface Attempt {
  readonly attempts: number;
  readonly outcome: string;
  readonly failure: string | null;
  readonly httpStatus: number | null;
  readonly retryAfterMs: number | null;
  readonly answer: string | null;
}

/** Sends an event to each of these, and waits for all ends. @returns by path, with the id of the event */
async function sendToAll(paths: readonly string[]) {
  const sent = new Map<string, Awaited<ReturnType<typeof storeStatus>>>();
  for (const path of paths)
    sent.set(path, await storeStatus(database, { partnerId: partners.get(path) as string }));
  const over = async () =>
    (await standings(database)).every(({ state }) => state === 'delivered' || state === 'failed');
  await until(over, 'the end of every notification', 120_000, 100);
  const ended = new Map<string, Attempt & { eventId: string }>();
  for (const [path, { notificationId, eventId }] of sent) {
    const [attempt] = await database.sql<Attempt[]>`
      select (count(*) over ())::int as attempts, outcome, failure, http_status as "httpStatus", retry_after_ms as "retryAfterMs", answer
      from delivery_attempts where notification_id = ${notificationId}`;
    ended.set(path, { ...(attempt as Attempt), eventId });
  }
  return ended;
}

test('each receiver of the table is given its due, and nothing is delivered but by its own 2xx', async () => {
  const names = Object.keys(table);
  const paths = names.map((name) => `/${name}`);
  const first = await sendToAll(paths);
  await sleep(RESTED_MS);
  const rounds = [first, await sendToAll(paths)];
  for (const [round, ended] of rounds.entries()) {
    const seen = names.map((name) => {
      const { attempts, outcome, failure, httpStatus } = ended.get(`/${name}`) as Attempt;
      return { name, attempts, outcome, end: httpStatus ?? failure };
    });
    expect(seen).toEqual(
      names.map((name) => {
        const end = endOf(name, round);
        const outcome = typeof end === 'number' && end < 300 ? 'delivered' : 'failed';
        return { name, attempts: 1, outcome, end: typeof end === 'number' ? end : end.split(' ')[0] };
      }),
    );
    for (const name of names) {
      const { eventId, outcome, failure, httpStatus, answer } = ended.get(`/${name}`) as Attempt & {
        eventId: string;
      };
      if (outcome === 'delivered') expect(answered.get(eventId)).toContain(httpStatus);
      const reason = String(endOf(name, round)).split(' ')[1];
      if (failure === 'protocol') expect(answer).toContain(PROTOCOL_REASONS[reason as ProtocolReason]);
    }
  }
  const noted = await database.sql<{ path: string }[]>`
    select regexp_replace(url, '^.*/', '') as path from webhook_endpoints where surplus_at is not null order by 1`;
  const surplus = names.filter((name) => table[name]?.surplus);
  expect(noted.map(({ path }) => path)).toEqual(surplus.toSorted());
}, 180_000);

test('each form of Retry-After is stored as what it asks for', async () => {
  const ended = await sendToAll(asking.map(({ path }) => path));
  for (const { path, asksMs } of asking) {
    const { httpStatus, retryAfterMs } = ended.get(path) as Attempt;
    expect(httpStatus).toBe(503);
    if (asksMs === null || asksMs === 0) expect(retryAfterMs).toBe(asksMs);
    // A date comes nearer.
    else
      expect({
        path,
        fits: retryAfterMs !== null && retryAfterMs <= asksMs && retryAfterMs > asksMs - 110_000,
      }).toEqual({ path, fits: true });
  }
});
