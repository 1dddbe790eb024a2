import * as fc from 'fast-check';
import { ulid } from 'ulid';
import { cancelNotification } from '../../../db/notifications/attempt';
import { listForPartner, type PageWanted } from '../../../db/notifications/partner';
import { lowestNotificationId } from '../../../db/notifications/notification';
import { type NotificationStatus } from '../../../domain/notification-states';
import { type Database } from '../../../db/postgres/connect';
import { openDatabaseAt, useDatabase } from '../../support/database';
import { makePastMonth, monthOf } from '../../support/old-rows';
import { storeRow } from '../../support/partner-events';

const PARTNER_ID = 'P100001';
/** As the API has it. */
let pages: Database;
// Before the database is dropped.
afterAll(() => pages.close());
const database = useDatabase({ statementTimeoutMs: 60_000 });
beforeAll(() => void (pages = openDatabaseAt(database.url, { byIndex: true })));

const all: PageWanted = {
  partnerId: PARTNER_ID,
  environment: 'sandbox',
  fromId: 'ntf_',
  beforeId: lowestNotificationId(2 ** 48 - 1),
  limit: 25,
};

async function pagesOf(wanted: PageWanted, between: () => Promise<void> = async () => undefined) {
  const ids: string[] = [];
  for (let { beforeId } = wanted; ;) {
    const page = await listForPartner(pages.sql, { ...wanted, beforeId });
    ids.push(...page.notifications.map(({ notificationId }) => notificationId));
    if (page.next === null) return ids;
    beforeId = page.next;
    await between();
  }
}

test('what was there at the beginning is in the pages once, in order, while others are stored', async () => {
  const at = Date.now();
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 0, maxLength: 30 }),
      fc.integer({ min: 1, max: 7 }),
      fc.array(fc.integer({ min: -10, max: 60 }), { maxLength: 12 }),
      async (moments, limit, later) => {
        const partnerId = `P${200_000 + (runs += 1)}`;
        const store = (ms: number) => storeRow(database, { partnerId, at: new Date(at + ms) });
        const before = new Set<string>();
        for (const ms of moments) before.add(await store(ms));
        await storeRow(database, { partnerId: 'P100002' });
        await storeRow(database, { partnerId, environment: 'live' });
        const rest = [...later];
        const seen = await pagesOf({ ...all, partnerId, limit }, async () => {
          const ms = rest.pop();
          if (ms !== undefined) await store(ms);
        });
        expect(new Set(seen).size).toBe(seen.length);
        expect(seen.toSorted().toReversed()).toEqual(seen);
        expect(seen.filter((id) => before.has(id)).toSorted()).toEqual([...before].toSorted());
      },
    ),
    { numRuns: 40 },
  );
});

describe('among 60,000 in four months', () => {
  const APPLICATION = `app_${ulid()}`;

  beforeAll(async () => {
    await database.sql`truncate notifications, deliveries, delivery_attempts`;
    // The months before this one have partitions of their own, as in production.
    for (let daysAgo = 105; daysAgo > 0; daysAgo -= 15) await makePastMonth(database, monthOf(daysAgo));
    // Nearly all are delivered; one in 1,000 has failed, one in 5,000 is held. A tenth belong to others.
    await database.sql`
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence,
        merchant_reference, body, end_state, end_reason, delivered_at, ended_at, created_at)
      select 'ntf_' || left(ulid_floor(at), 10) || lpad(g::text, 16, '0'), 'evt_' || g,
        'credit_application.' || (array['accepted', 'signed', 'paid_out'])[1 + g % 3],
        case when g % 10 = 0 then 'P100002' else ${PARTNER_ID} end, 'sandbox', 'app_' || g / 4, 1 + g % 4,
        'order ' || g / 4, '{}', nullif(state, 'held'), case state when 'failed' then 'exhausted' end,
        case state when 'delivered' then at end, case when state <> 'held' then at end, at
      from generate_series(1, 60000) g,
        lateral (select now() - (60000 - g) * interval '150 seconds' as at,
          case when g % 5000 = 7 then 'held' when g % 1000 = 3 then 'failed' else 'delivered' end as state) one`;
    // And among others' that are under way.
    await database.sql`
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, body)
      select 'ntf_' || left(ulid_floor(now()), 10) || lpad(g::text, 16, 'Z'), 'evt_z' || g, 'credit_application.test', 'P100002',
        'sandbox', '{}'
      from generate_series(1, 3000) g`;
    await database.sql`
      insert into deliveries (notification_id, partner_id, environment, application_id, sequence, test, state, held_at, hold_reason)
      select notification_id, partner_id, environment, application_id, sequence, application_id is null,
        case when application_id is null then 'queued' else 'held' end, case when application_id is not null then created_at end,
        case when application_id is not null then 'webhook_not_registered' end
      from notifications where end_state is null`;
    for (const table of ['notifications', 'deliveries'])
      await database.sql`
        update ${database.sql(table)} t set application_id = ${APPLICATION} from notifications n
        where t.notification_id = n.notification_id and n.partner_id = ${PARTNER_ID}
          and n.merchant_reference in ('order 9000', 'order 5000')`;
    await database.sql`analyze notifications`;
    await database.sql`analyze deliveries`;
  });

  const inTheMiddle = `ntf_${ulid(Date.now() - 60 * 86_400_000).slice(0, 10)}${'0'.repeat(16)}`;
  const of = (status: NotificationStatus) => ({ status });

  test.each<Partial<PageWanted>>([
    { limit: 100, fromId: inTheMiddle },
    { limit: 2, ...of('failed') },
    { limit: 2, ...of('held') },
    { limit: 2, ...of('held'), eventType: 'credit_application.signed' },
    { limit: 100, eventType: 'credit_application.paid_out', fromId: inTheMiddle },
    { limit: 100, ...of('delivered'), eventType: 'credit_application.signed' },
  ])('the pages of %j are all that there is', async (filter) => {
    const { fromId, status = null, eventType = null } = { ...all, ...filter };
    const rows = await database.sql<{ id: string }[]>`
      select notification_id as id from notifications n left join deliveries d using (notification_id)
      where n.partner_id = ${PARTNER_ID} and notification_id >= ${fromId}
        and coalesce(${status}::text, n.end_state, d.state) = coalesce(d.state, n.end_state)
        and coalesce(${eventType}::text, n.event_type) = n.event_type
      order by 1 desc`;
    expect(rows.length).toBeGreaterThan(3);
    expect(await pagesOf({ ...all, ...filter })).toEqual(rows.map(({ id }) => id));
  });

  test('a notification that ends while its page is read does not end the list', async () => {
    const wanted = { ...all, ...of('held'), limit: 2 };
    const before = await pagesOf(wanted);
    let statements = 0;
    const unsafe = async (...statement: Parameters<typeof pages.sql.unsafe>) => {
      const rows = await pages.sql.unsafe(...statement);
      statements += 1;
      if (statements === 1) await database.db.transaction((tx) => cancelNotification(tx, before[0] ?? ''));
      return rows;
    };
    const reader = Object.assign(() => undefined, { unsafe }) as unknown as typeof pages.sql;
    const { notifications, next } = await listForPartner(reader, wanted);
    expect(notifications.map(({ notificationId }) => notificationId)).toEqual(before.slice(1, 3));
    expect(statements).toBe(2);
    expect(next).toBe(before[2]);
  });

  test('what several filters find among many is found all the same, though pages in between are empty', async () => {
    const delivered = { ...all, ...of('delivered') };
    // Two in 60,000.
    await database.sql`update notifications set event_type = 'credit_application.refunded'
      where notification_id in (select min(notification_id) from notifications where partner_id = ${PARTNER_ID} and end_state = 'delivered')
        or notification_id in (select max(notification_id) from notifications where partner_id = ${PARTNER_ID} and end_state = 'delivered')`;
    expect(await pagesOf({ ...delivered, eventType: 'credit_application.refunded' })).toHaveLength(2);
  });
});
