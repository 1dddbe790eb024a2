import { backlog, deliveryFigures } from '../../../db/figures';
import { markStarted, type Claim } from '../../../db/notifications/claim';
import { openAttempt, cancelNotification, endNotification } from '../../../db/notifications/attempt';
import type { DbOrTransaction } from '../../../db/postgres/connect';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { claimAll } from '../../support/claims';
import { emptyNotifications, useDatabase } from '../../support/database';
import {
  advanceServiceClock,
  newKeyRingText,
  newPartner as addPartner,
  putInState,
  setServiceClock,
  storeMany,
  storeStatus,
  storeTest,
} from '../../../testbed/notifications';
import { attempt as makeAttempt } from '../../support/partner-events';
import { DELIVERED, FAILED } from '../../../testbed/values';

const keyRing = newKeyRingText();
const database = useDatabase({ poolSize: 12 });

beforeEach(() => emptyNotifications(database));
afterEach(() => setServiceClock(database, null));
const newPartner = async () => (await addPartner(database, keyRing)).partnerId;

/** Stores so many, each of an application of its own. */
const store = (partnerId: string, count: number, more: { environment?: 'live' } = {}) =>
  storeMany(count, () => storeStatus(database, { partnerId, ...more }));

const claim = (options: Parameters<typeof claimAll>[1] = {}, through: DbOrTransaction = database.db) =>
  claimAll(through, options);
const idsOf = ({ claimed }: Claim) => claimed.map(({ notificationId }) => notificationId);
const partnersOf = ({ claimed }: Claim) => claimed.map(({ partnerId }) => partnerId);

const attempt = (notificationId: string, outcome: DeliveryOutcome) =>
  makeAttempt(database, notificationId, outcome, 5_000);

describe('tests of an endpoint', () => {
  const storeTests = (partnerId: string, count: number) =>
    storeMany(count, () => storeTest(database, { partnerId }));

  it('wait while four are being tried again; events and other endpoints do not', async () => {
    const [one, other] = [await newPartner(), await newPartner()];
    const first = await storeTests(one, 4);
    expect(idsOf(await claim())).toEqual(first);
    for (const id of first) await attempt(id, FAILED);
    const [fifth] = await storeTests(one, 3);
    const events = await store(one, 2);
    const others = await storeTests(other, 1);
    const next = await claim();
    expect(idsOf(next).toSorted()).toEqual([...events, ...others].toSorted());
    // Else the end of anybody's attempt would ask for a claim.
    expect(next).toMatchObject({ waiting: false });
    await store(one, 16);
    expect(await claim({ limit: 8 })).toMatchObject({ claimed: { length: 8 }, waiting: true });
    await claim();
    expect(await claim()).toMatchObject({ claimed: [], waiting: true });
    await database.sql`update deliveries set taken_at = null where not test`;

    const ended = { notificationId: first[0] ?? '', generation: 1 };
    await endNotification(database.db, ended, { state: 'failed', reason: 'exhausted' });
    expect(idsOf(await claim())).toContain(fifth);
  });

  it('are not paced when they are delivered, nor when three fail', async () => {
    const one = await newPartner();
    for (let round = 0; round < 3; round += 1) {
      const ids = await storeTests(one, 10);
      expect(idsOf(await claim())).toEqual(ids);
      for (const id of ids) await attempt(id, DELIVERED);
    }
    const three = await storeTests(one, 3);
    await claim();
    for (const id of three) await attempt(id, FAILED);
    const next = await storeTests(one, 1);
    expect(idsOf(await claim())).toEqual(next);
  });
});

describe('slots of an endpoint', () => {
  it('holds sixteen at most, until first attempts end', async () => {
    const one = await newPartner();
    await store(one, 20);
    const first = await claim();
    expect(first).toMatchObject({ claimed: { length: 16 }, waiting: true });
    expect(await claim()).toMatchObject({ claimed: [], waiting: true });
    await markStarted(database.db, first.claimed);
    const [delivered = '', failed = '', open = ''] = idsOf(first);
    await attempt(delivered, DELIVERED);
    // It will be tried again, from its workflow; its place is free.
    await attempt(failed, FAILED);
    await openAttempt(database.db, { notificationId: open, generation: 1 });
    expect(await claim()).toMatchObject({ claimed: { length: 2 }, waiting: true });
    expect(await claim()).toMatchObject({ claimed: [], waiting: true });
  });

  it('are as many as the claim gives it', async () => {
    const [slow, fast] = [await newPartner(), await newPartner()];
    await store(slow, 20);
    await store(fast, 30);
    const slotsOf = (queue: string) => (queue.startsWith(fast) ? 25 : 16);
    const first = await claim({ slotsOf });
    expect(partnersOf(first).filter((partnerId) => partnerId === slow)).toHaveLength(16);
    expect(first.claimed).toHaveLength(16 + 25);
    // It is fast no more.
    expect((await claim()).claimed).toEqual([]);
  });

  it('shows in the figures: what waits behind a slow endpoint, and since when, apart from the age of the backlog', async () => {
    const [slow, other] = [await newPartner(), await newPartner()];
    await store(slow, 20);
    await store(other, 3);
    await advanceServiceClock(database, 20 * 60);
    const figures = async () => {
      const { pending, capped, oldestMs, oldestCappedMs } = await backlog(database.db);
      const [oldest, oldestCapped] = [oldestMs, oldestCappedMs].map((ms) => Math.round(ms / 60_000));
      return { pending, capped, oldest, oldestCapped };
    };
    const { claimed } = await claim();
    // Taken, and not started: that is Temporal's absence.
    expect(await figures()).toEqual({ pending: 23, capped: 0, oldest: 20, oldestCapped: 0 });
    await markStarted(database.db, claimed);
    expect(await figures()).toEqual({ pending: 4, capped: 4, oldest: 0, oldestCapped: 20 });
    await store(other, 1);
    await advanceServiceClock(database, 7 * 60);
    expect(await figures()).toMatchObject({ pending: 5, oldest: 7 });
  });

  it('is per environment', async () => {
    const one = await newPartner();
    await store(one, 17);
    await store(one, 17, { environment: 'live' });
    expect((await claim()).claimed).toHaveLength(32);
  });

  it('is given back by a dispatcher that dies', async () => {
    const one = await newPartner();
    await store(one, 20);
    expect((await claim({ leaseMs: 0 })).claimed).toHaveLength(16);
    expect((await claim()).claimed).toHaveLength(16);
    expect((await claim()).claimed).toHaveLength(0);
  });

  it('holds when dispatchers race, with none claimed twice', async () => {
    const all = await Promise.all([newPartner(), newPartner(), newPartner()]);
    for (const partnerId of all) await store(partnerId, 10);
    for (let round = 1; round <= 2; round += 1) {
      const claims: Claim[] = [];
      // Of those at once each endpoint is left to one.
      for (let times = 0; times < 4; times += 1)
        claims.push(...(await Promise.all(Array.from({ length: 10 }, () => claim({ limit: 3, slots: 4 })))));
      const ids = claims.flatMap(idsOf);
      expect(new Set(ids).size).toBe(ids.length);
      for (const partnerId of all) {
        expect(claims.flatMap(partnersOf).filter((one) => one === partnerId)).toHaveLength(4);
      }
      for (const id of ids) await attempt(id, DELIVERED);
    }
  });
});

test('the figures show how long the oldest pause has lasted', async () => {
  const [older = '', younger = '', other = ''] = await store(await newPartner(), 3);
  for (const id of [older, younger, other]) await putInState(database, id, 'started');
  const running = { undelivered: { started: 3 }, oldestPausedMs: 0 };
  expect(await deliveryFigures(database.db)).toMatchObject(running);
  const ago = (hours: number) => ({ paused_at: new Date(Date.now() - hours * 3_600_000).toISOString() });
  await putInState(database, older, 'started', ago(25));
  await putInState(database, younger, 'started', ago(1));
  const { oldestPausedMs } = await deliveryFigures(database.db);
  expect(Math.floor(oldestPausedMs / 3_600_000)).toBe(25);
});

test('the figures show how long the next attempt of a started delivery has been due, unless it is paused', async () => {
  const [first = '', retried = '', planned = '', paused = ''] = await store(await newPartner(), 4);
  const at = (minutes: number) => new Date(Date.now() + minutes * 60_000).toISOString();
  const overdueMinutes = async () => Math.round((await deliveryFigures(database.db)).overdueMs / 60_000);
  await putInState(database, planned, 'started', { started_at: at(-90), next_attempt_at: at(5) });
  await putInState(database, paused, 'started', { started_at: at(-90), paused_at: at(-80) });
  expect(await overdueMinutes()).toBe(0);
  await putInState(database, first, 'started', { started_at: at(-7) });
  expect(await overdueMinutes()).toBe(7);
  await putInState(database, retried, 'started', { started_at: at(-90), next_attempt_at: at(-12) });
  expect(await overdueMinutes()).toBe(12);
});

test('the figures show what was not delivered within a minute: no tests, and nothing that was delivered before', async () => {
  const partnerId = await newPartner();
  const [queued = '', sent = '', ended = '', again = ''] = await store(partnerId, 4);
  await storeTest(database, { partnerId });
  for (const id of [sent, ended, again]) await putInState(database, id, 'started');
  await attempt(ended, DELIVERED);
  await database.sql`update deliveries set delivered = true where notification_id = ${again}`;
  expect(await deliveryFigures(database.db)).toMatchObject({ late: 0 });
  await advanceServiceClock(database, 61);
  expect(await deliveryFigures(database.db)).toMatchObject({ late: 2 });
  await putInState(database, queued, 'held');
  expect(await deliveryFigures(database.db)).toMatchObject({ late: 2 });
});

describe('a claim in an open transaction', () => {
  it('does not block the claim of another endpoint, which leaves its own alone', async () => {
    const [one, two] = [await newPartner(), await newPartner()];
    for (const partnerId of [one, two]) await store(partnerId, 2);
    await database.db.transaction(async (open) => {
      // One is taken: the endpoint is this claim's alone until it commits.
      expect(partnersOf(await claim({ limit: 1 }, open))).toEqual([one]);
      const beside = await claim();
      expect(partnersOf(beside)).toEqual([two, two]);
      expect(beside).toMatchObject({ waiting: true, contended: true });
    });
    const after = await claim();
    expect(partnersOf(after)).toEqual([one]);
    expect(after).toMatchObject({ contended: false });
  });
});

describe('the order', () => {
  it('gives each queue the same share, and says which can be claimed again, and which wait', async () => {
    const [a, b, c] = [await newPartner(), await newPartner(), await newPartner()];
    await store(a, 30);
    await store(b, 1);
    await store(c, 30);
    const first = await claim({ limit: 3 });
    expect(partnersOf(first)).toEqual([a, b, c]);
    const more = [a, c].map((partnerId) => ({ queue: `${partnerId}/sandbox`, why: 'more' }));
    expect(first.remaining).toEqual(more);
    expect(partnersOf(await claim({ limit: 6 }))).toEqual([a, a, a, c, c, c]);
    await claim();
    expect((await claim()).remaining).toEqual(more.map((one) => ({ ...one, why: 'waits' })));
  });

  it('takes from another worker only what has been due for the grace', async () => {
    const one = await newPartner();
    const [old = ''] = await store(one, 3);
    await database.sql`update deliveries set due_at = service_now() - interval '2 s' where notification_id = ${old}`;
    const foreign = await claim({ graceMs: 1_000 });
    expect(idsOf(foreign)).toEqual([old]);
    expect(foreign.remaining).toEqual([]);
  });

  it('takes what is due first, and the oldest of it', async () => {
    const one = await newPartner();
    const ids = await store(one, 3);
    await database.sql`update deliveries set due_at = service_now() + interval '1 hour'
      where notification_id = ${ids[0] ?? ''}`;
    expect(idsOf(await claim({ limit: 1 }))).toEqual([ids[1]]);
    expect(await claim()).toMatchObject({ claimed: [{ notificationId: ids[2] }], waiting: false });
    expect(await claim()).toMatchObject({ claimed: [], waiting: false });
  });

  it('takes bulk recovery after every first attempt, the other endpoints too', async () => {
    const [a, b] = [await newPartner(), await newPartner()];
    const recovered = [...(await store(a, 10)), ...(await store(b, 10))];
    await database.sql`update deliveries set priority = 1`;
    const live = [...(await store(a, 3)), ...(await store(b, 3))];
    expect(idsOf(await claim({ limit: 6 })).toSorted()).toEqual(live.toSorted());
    const rest: string[] = [];
    for (let round = 0; round < 5; round += 1) rest.push(...idsOf(await claim({ limit: 6 })));
    expect(rest.toSorted()).toEqual(recovered.toSorted());
  });
});

describe('events of one application', () => {
  const events = async (partnerId: string, count: number) => {
    const of = { partnerId, applicationId: `app_${partnerId}` };
    const ids = await storeMany(count, (nth) => storeStatus(database, { ...of, sequence: nth + 1 }));
    return ids as [string, string, string];
  };

  it('go one after the other has ended', async () => {
    const [first, second, third] = await events(await newPartner(), 3);
    expect(await claim()).toMatchObject({ claimed: [{ notificationId: first }], waiting: true });
    await openAttempt(database.db, { notificationId: first, generation: 1 });
    expect(await claim()).toMatchObject({ claimed: [], waiting: true });
    await attempt(first, DELIVERED);
    expect(idsOf(await claim())).toEqual([second]);
    await putInState(database, second, 'cancelled');
    expect(idsOf(await claim())).toEqual([third]);
  });

  it('wait for one that fails for sixty seconds from its first attempt, and no longer', async () => {
    await setServiceClock(database, '2027-03-01T10:00:00Z');
    const [first, second, third] = await events(await newPartner(), 3);
    await claim();
    await setServiceClock(database, '2027-03-01T10:01:00Z');
    await attempt(first, FAILED);
    await setServiceClock(database, '2027-03-01T10:01:59Z');
    await attempt(first, FAILED);
    expect((await claim()).claimed).toEqual([]);
    await setServiceClock(database, '2027-03-01T10:02:00Z');
    expect(idsOf(await claim())).toEqual([second]);
    // It counts from the second's own first attempt now, which has not been made.
    await setServiceClock(database, '2027-03-01T11:00:00Z');
    expect(idsOf(await claim({ leaseMs: 0 }))).not.toContain(third);
  });

  it('are due at once though the endpoint was well in between, when the quick way would record the end', async () => {
    const partnerId = await newPartner();
    const [first, second] = await events(partnerId, 2);
    await claim();
    await attempt(first, FAILED);
    const [other = ''] = await store(partnerId, 1);
    await claim();
    await attempt(other, DELIVERED);
    await attempt(first, DELIVERED);
    expect(idsOf(await claim())).toEqual([second]);
  });

  it.each(['its workflow', 'an operator'])('are due as soon as %s ends one that failed once', async (by) => {
    const [first, second] = await events(await newPartner(), 2);
    const ref = { notificationId: first, generation: 1 };
    await claim();
    await attempt(first, FAILED);
    expect((await claim()).claimed).toEqual([]);
    if (by === 'an operator') await database.db.transaction((tx) => cancelNotification(tx, first, 1));
    else await endNotification(database.db, ref, { state: 'cancelled', reason: 'operator' });
    expect(idsOf(await claim())).toEqual([second]);
  });

  it('wait for a held one, also while there is no endpoint: it could come back before the attempt', async () => {
    const partnerId = await newPartner();
    const [first, second] = await events(partnerId, 2);
    await putInState(database, first, 'held');
    expect(await claim()).toMatchObject({ claimed: [], waiting: true });
    await database.sql`update webhook_endpoints set state = 'disabled' where partner_id = ${partnerId}`;
    expect(await claim()).toMatchObject({ claimed: [], waiting: true });
    await database.sql`delete from deliveries where notification_id = ${first}`;
    expect(idsOf(await claim())).toEqual([second]);
  });

  it('do not wait for an earlier one that is sent again: in bulk, or though it was delivered', async () => {
    const [first, second, third] = await events(await newPartner(), 3);
    await database.sql`update deliveries set priority = 1 where notification_id in ${database.sql([first, second])}`;
    const taken = idsOf(await claim());
    // Among themselves they keep their order.
    expect(taken.toSorted()).toEqual([first, third].toSorted());
    await database.sql`update deliveries set delivered = true where notification_id = ${first}`;
    expect(idsOf(await claim())).toEqual([second]);
  });
});
