import { defineSearchAttributeKey } from '@temporalio/common';
import { orderDeliveries } from '../../db/notifications/orders';
import { SEARCH_ATTRIBUTE } from '../../domain/notification-states';
import { opsJson } from '../ops/run';
import { until } from '../../testbed/until';
import { deliveryOf, orderDelivery } from '../support/histories';
import { comesTo, standingOf, storeStatus } from '../../testbed/notifications';
import { useWorkers } from '../support/service';
import { testTemporal } from '../support/temporal';
import { WAKE_SIGNAL } from '../../workflows/names';

/** Orders to a delivery that waits: row, `ops` and Temporal's page say the same, at once (row 132). */

const temporal = testTemporal();
const service = useWorkers(temporal);
const { database } = service;
let partnerId = '';
beforeAll(async () => {
  await service.start({ DELIVERY_LADDER_SECONDS: '0,3600,3600', TEST_LADDER_SECONDS: '0' });
}, 300_000);
beforeEach(async () => {
  partnerId = await service.newPartner();
  service.receiver.behave(() => 503);
});

const UTC = String.raw`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`;
const handleOf = (id: string) => deliveryOf(temporal.client, id);
const order = (wanted: Parameters<typeof orderDelivery>[1], id: string) =>
  orderDelivery({ database, client: temporal.client }, wanted, id);
/** What the page shows: its details now, and the attribute. */
async function page(id: string) {
  const handle = handleOf(id);
  const { currentDetails } = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
  const { typedSearchAttributes: attributes } = await handle.describe();
  const status = attributes.get(defineSearchAttributeKey(SEARCH_ATTRIBUTE.status, 'KEYWORD'));
  return { details: currentDetails, status };
}
const shows = (id: string, status: string, details: RegExp) =>
  until(async () => {
    // Its workflow may not have been started yet.
    const now = await page(id).catch(() => null);
    return now?.status === status && details.test(now.details);
  }, `${status}: ${details.source}`);

/** One that has failed once, and waits for an hour. */
async function waiting(): Promise<string> {
  const { notificationId } = await storeStatus(database, { partnerId });
  await shows(notificationId, 'retrying', new RegExp(`Waits until ${UTC} for attempt 2: retry ladder\\.`));
  return notificationId;
}
const doing = async (id: string) =>
  ((await opsJson(database.url, 'notifications', 'show', id)) as { now: { doing: string } }).now.doing;

test('a pause in the middle of a wait shows at once, and its end too', async () => {
  const id = await waiting();
  await order('pause', id);
  await shows(id, 'paused', new RegExp(`Paused by an operator since ${UTC}, until it is resumed\\.`));
  expect(await doing(id)).toBe('paused');
  await order('resume', id);
  await shows(id, 'retrying', new RegExp(`Waits until ${UTC} for attempt 2`));
  expect(await doing(id)).toBe('waiting_for_attempt');
  expect((await standingOf(database, id)).attempts).toEqual(['failed']);
  service.receiver.behave(() => 200);
  await order('retry_now', id);
  await comesTo(database, id, 'delivered');
});

test('retry-now makes one attempt of a paused one, which then is paused again', async () => {
  const id = await waiting();
  await order('pause', id);
  await shows(id, 'paused', /Paused by an operator/);
  await order('retry_now', id);
  await until(async () => (await standingOf(database, id)).attempts.length === 2, 'an attempt');
  await shows(id, 'paused', /attempt 2 answered 503/);
  expect((await standingOf(database, id)).attempts).toEqual(['failed', 'failed']);
});

test('a wake that is lost is made good by the reconciler, and the order is read once', async () => {
  const id = await waiting();
  await orderDeliveries(database.sql, 'pause', [id], 'operator');
  expect((await page(id)).status).toBe('retrying');
  // The order was given some time ago.
  await database.sql`
    update deliveries set ordered_at = ordered_at - interval '31 s', checked_at = checked_at - interval '31 s'
    where notification_id = ${id}`;
  await shows(id, 'paused', /Paused by an operator/);
  const ordered = await database.sql`
    select 1 from deliveries where notification_id = ${id} and ordered_at is not null`;
  expect(ordered).toHaveLength(0);
});

test('a pause that a restored database does not know any more ends', async () => {
  const id = await waiting();
  await order('pause', id);
  await shows(id, 'paused', /Paused by an operator/);
  // The database is one from before the pause.
  await database.sql`
    update deliveries set paused_at = null, paused_by = null, checked_at = checked_at - interval '61 s'
    where notification_id = ${id}`;
  await shows(id, 'retrying', new RegExp(`Waits until ${UTC} for attempt 2`));
});

test('a queued delivery whose workflow waits already, as a restored database has it, is sent', async () => {
  const id = await waiting();
  service.receiver.behave(() => 200);
  // The database is one from before the first attempt.
  await database.sql`delete from delivery_attempts where notification_id = ${id}`;
  await database.sql`
    update deliveries set state = 'queued', attempts = 0, step = 0, due_at = service_now(), started_at = null, checked_at = null,
      first_attempt_at = null, next_attempt_at = null, waits_for = null, ladder_ms = null
    where notification_id = ${id}`;
  await comesTo(database, id, 'started');
  await database.sql`
    update deliveries set checked_at = checked_at - interval '61 s' where notification_id = ${id}`;
  await comesTo(database, id, 'delivered');
});

const ended = (end: string, reason: string) => new RegExp(`Ended ${UTC}: ${end} \\(${reason}\\)\\.`);

test('the page of a delivery that ends otherwise than delivered says how, and when', async () => {
  const [held, cancelled] = [await waiting(), await waiting()];
  await handleOf(cancelled).cancel();
  await comesTo(database, cancelled, 'cancelled');
  await shows(cancelled, 'cancelled', ended('cancelled', 'operator'));

  service.receiver.behave(() => 410);
  const { notificationId: gone } = await storeStatus(database, { partnerId });
  await comesTo(database, gone, 'failed');
  await shows(gone, 'failed', ended('failed', 'gone'));

  await order('retry_now', held);
  await comesTo(database, held, 'held');
  await shows(held, 'held', ended('held', 'endpoint_gone'));
});

test('a workflow whose row is another generation by now ends as superseded', async () => {
  const id = await waiting();
  await database.sql`update deliveries set generation = 2 where notification_id = ${id}`;
  await handleOf(id).signal(WAKE_SIGNAL);
  await shows(id, 'superseded', new RegExp(`Ended ${UTC}: superseded\\.`));
});
