import { parseKeyRing } from '../../../db/endpoints/key-ring';
import {
  cancelNotification,
  openAttempt,
  endNotification,
  recordAttempt,
} from '../../../db/notifications/attempt';
import { resendNotification } from '../../../db/notifications/resend';
import { setEndpointState } from '../../../db/endpoints/endpoints';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { useDatabase } from '../../support/database';
import { claimAll, newKeyRingText, newPartner, openedAttempt, storeTest } from '../../support/notifications';
import { DELIVERED, FAILED } from '../../support/values';

const EXHAUSTED = { state: 'failed', reason: 'exhausted' } as const;
const keyRing = parseKeyRing(newKeyRingText());
const database = useDatabase();
let partnerId = '';
let endpointId = '';

// Each test has a partner of its own, so that counts do not mix.
beforeEach(async () => {
  ({ partnerId, endpointId } = await newPartner(database, keyRing));
});

/** A notification of an application's status; the test event's row serves, as nothing here looks into the body. */
async function storeStatus(): Promise<string> {
  const { notificationId } = await storeTest(database, { partnerId });
  await database.sql`
    update notifications set event_type = 'credit_application.accepted' where notification_id = ${notificationId}`;
  await database.sql`
    update deliveries set test = false, reserved_month = null where notification_id = ${notificationId}`;
  await database.sql`update monthly_counts set reserved = reserved - 1 where partner_id = ${partnerId}`;
  return notificationId;
}

async function attempt(notificationId: string, generation: number, outcome: DeliveryOutcome): Promise<void> {
  const { attemptNumber } = await openedAttempt(database, { notificationId, generation });
  const result = { outcome, address: '192.0.2.1' };
  await recordAttempt(database.db, { notificationId, attemptNumber }, result, EXHAUSTED);
}

const resend = (notificationId: string) =>
  database.db.transaction((tx) => resendNotification(tx, notificationId));
const cancel = (notificationId: string, dead: number | null = null) =>
  database.db.transaction((tx) => cancelNotification(tx, notificationId, dead));
const row = async (notificationId: string) =>
  (await database.sql`select * from notifications_now where notification_id = ${notificationId}`)[0];
const counts = () =>
  database.sql`select event_type, delivered, failed, reserved from monthly_counts where partner_id = ${partnerId}
    and delivered + failed + reserved > 0 order by 1`;

describe('sending again', () => {
  test('makes one that failed due under the next generation, with the same event and body', async () => {
    const notificationId = await storeStatus();
    await attempt(notificationId, 1, FAILED);
    const before = await row(notificationId);
    expect(await resend(notificationId)).toMatchObject({ was: { state: 'failed' }, generation: 2 });
    const after = await row(notificationId);
    expect(after).toMatchObject({ state: 'queued', generation: 2, end_reason: null, ended_at: null });
    for (const same of ['event_id', 'body', 'attempts']) expect(after?.[same]).toEqual(before?.[same]);
    const claimed = await claimAll(database);
    expect(claimed).toContainEqual(expect.objectContaining({ notificationId, generation: 2 }));
    await attempt(notificationId, 2, DELIVERED);
    expect(await row(notificationId)).toMatchObject({ state: 'delivered', attempts: 2 });
    expect(await counts()).toMatchObject([{ delivered: 1, failed: 0, reserved: 0 }]);
  });

  test('is heard of by the dispatcher', async () => {
    const notificationId = await storeStatus();
    await attempt(notificationId, 1, FAILED);
    const heard: string[] = [];
    const listening = await database.sql.listen('notifications', (id) => void heard.push(id));
    await resend(notificationId);
    while (!heard.includes('due')) await new Promise((resolve) => setTimeout(resolve, 10));
    await listening.unlisten();
  });

  test.each([
    ['delivered again', DELIVERED, { state: 'delivered', end_reason: null }],
    ['not delivered again', FAILED, { state: 'failed', end_reason: 'exhausted' }],
  ])('counts one that was delivered no second time: %s', async (_, outcome, end) => {
    const notificationId = await storeStatus();
    await attempt(notificationId, 1, DELIVERED);
    const { delivered_at: first } = (await row(notificationId)) ?? {};
    await resend(notificationId);
    await attempt(notificationId, 2, outcome);
    expect(await row(notificationId)).toMatchObject({ ...end, delivered_at: first });
    expect(await counts()).toMatchObject([{ delivered: 1, failed: 0, reserved: 0 }]);
  });

  test('is not ended by what is left of the generation before', async () => {
    const notificationId = await storeStatus();
    const late = await openedAttempt(database, { notificationId, generation: 1 });
    await endNotification(database.db, late, EXHAUSTED);
    await resend(notificationId);
    await recordAttempt(database.db, late, { outcome: FAILED, address: null }, EXHAUSTED);
    expect(await row(notificationId)).toMatchObject({ state: 'queued', generation: 2 });
  });

  test('takes a test a place in the month, which its delivery turns into a count', async () => {
    const { notificationId } = await storeTest(database, { partnerId });
    await attempt(notificationId, 1, FAILED);
    await resend(notificationId);
    expect(await counts()).toMatchObject([{ delivered: 0, failed: 1, reserved: 1 }]);
    await attempt(notificationId, 2, DELIVERED);
    expect(await counts()).toMatchObject([{ delivered: 1, failed: 0, reserved: 0 }]);
  });

  test('is refused for a test when the month is full, and leaves it as it was', async () => {
    const { notificationId } = await storeTest(database, { partnerId });
    await attempt(notificationId, 1, FAILED);
    await database.sql`update monthly_counts set delivered = 99, reserved = 1 where partner_id = ${partnerId}`;
    await expect(resend(notificationId)).rejects.toThrow(/limit of 100 .* 99 delivered and 1 under way/);
    expect(await row(notificationId)).toMatchObject({ state: 'failed', generation: 1 });
    expect(await counts()).toMatchObject([{ delivered: 99, reserved: 1 }]);
  });

  test('is refused for a test that was delivered, for one under way, and without an active endpoint', async () => {
    const { notificationId } = await storeTest(database, { partnerId });
    await expect(resend(notificationId)).rejects.toThrow('under way');
    await attempt(notificationId, 1, DELIVERED);
    await expect(resend(notificationId)).rejects.toThrow('send a new one');
    const other = await storeStatus();
    await attempt(other, 1, FAILED);
    await setEndpointState(database.db, endpointId, { state: 'disabled', reason: 'operator' });
    await expect(resend(other)).rejects.toThrow('has no active sandbox endpoint');
    await expect(resend('ntf_x')).rejects.toThrow('does not exist');
  });
});

describe('cancelling in the database', () => {
  test('ends a pending test, gives its place back, and leaves its workflow nothing to do', async () => {
    const { notificationId } = await storeTest(database, { partnerId });
    expect(await cancel(notificationId)).toEqual({ kind: 'cancelled', was: 'queued', partnerId });
    expect(await row(notificationId)).toMatchObject({ state: 'cancelled', end_reason: 'operator' });
    expect((await row(notificationId))?.ended_at).not.toBeNull();
    expect(await counts()).toEqual([]);
    expect(await openAttempt(database.db, { notificationId, generation: 1 })).toMatchObject({ kind: 'over' });
    await expect(cancel(notificationId)).rejects.toThrow('has ended already: cancelled');
  });

  test('ends a held one', async () => {
    const notificationId = await storeStatus();
    const end = { state: 'held', reason: 'webhook_not_registered' } as const;
    await endNotification(database.db, { notificationId, generation: 1 }, end);
    expect(await cancel(notificationId)).toEqual({ kind: 'cancelled', was: 'held', partnerId });
  });

  test('leaves one under way to its workflow, unless that is known to be gone', async () => {
    const { notificationId } = await storeTest(database, { partnerId });
    await openAttempt(database.db, { notificationId, generation: 1 });
    expect(await cancel(notificationId)).toEqual({ kind: 'under_way', generation: 1, partnerId });
    expect(await cancel(notificationId, 2)).toEqual({ kind: 'under_way', generation: 1, partnerId });
    expect(await row(notificationId)).toMatchObject({ state: 'started' });
    expect(await cancel(notificationId, 1)).toEqual({ kind: 'cancelled', was: 'started', partnerId });
    expect(await counts()).toEqual([]);
  });
});
