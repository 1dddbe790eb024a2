import { createPartner } from '../../../db/catalogue/partners';
import { endNotification, openAttempt, recordAttempt } from '../../../db/notifications/attempt';
import { pauseDeliveries } from '../../../db/notifications/hold';
import { orderDeliveries } from '../../../db/notifications/orders';
import {
  DELIVERY_CHANGES,
  DELIVERY_STATES,
  END_STATES,
  ENDS,
  isOpen,
  NOTIFICATION_STATES,
  type DeliveryChange,
  type DeliveryEvent,
  type NotificationState,
} from '../../../domain/notification-states';
import { DELIVERY_LADDER_MS, type DeliveryOutcome } from '../../../domain/delivery-outcome';
import { claimAll } from '../../support/claims';
import { emptyNotifications, useDatabase } from '../../support/database';
import { addEndpoint, putInState, setServiceClock } from '../../../testbed/notifications';
import { storeRow } from '../../support/partner-events';
import { DELIVERED, FAILED } from '../../../testbed/values';

/**
 * claim.sql, open.sql and record.sql change rows by statements of their own: each does what the table says, in every state. The SQL of
 * all other events is made from the table.
 */
const partnerId = 'P100001';
const [BEFORE, NOW, LATER] = [
  '2027-03-01T09:00:00+00:00',
  '2027-03-02T10:00:00+00:00',
  '2027-03-02T10:00:05+00:00',
];
const database = useDatabase({ poolSize: 1 });

beforeAll(async () => {
  await database.sql`set time zone 'UTC'`;
  await createPartner(database.db, { partnerId, name: 'Example' });
  await addEndpoint(database, { partnerId });
  await setServiceClock(database, NOW);
});
beforeEach(() => emptyNotifications(database));

type Columns = Record<string, string | number | null>;
type Row = Record<string, unknown>;
const rowOf = async (table: 'deliveries' | 'notifications', id: string): Promise<Row | undefined> =>
  (
    await database.sql`
      select to_jsonb(t) as row from ${database.sql(table)} t where notification_id = ${id}`
  )[0]?.['row'];

/** Stores a notification in a state, with a value in every field that may have one there. */
async function stored(state: NotificationState, more: Columns = {}): Promise<string> {
  const id = await storeRow(database, { partnerId, state, at: new Date(BEFORE) });
  const moments = { due_at: BEFORE, started_at: BEFORE, first_attempt_at: BEFORE, checked_at: BEFORE };
  const open = isOpen(state) && { taken_at: BEFORE, next_attempt_at: BEFORE, ordered_at: BEFORE };
  await putInState(database, id, state, { attempts: 2, step: 1, ...moments, ...open, ...more });
  return id;
}

const ref = (id: string) => ({ notificationId: id, generation: 1 });
/** Records the attempt that was opened last. */
async function record(id: string, outcome: DeliveryOutcome): Promise<void> {
  await database.sql`
    insert into delivery_attempts (notification_id, attempt_number, generation, endpoint_id, started_at)
    values (${id}, 2, 1, 'whe_x', ${BEFORE})`;
  const attempt = { notificationId: id, attemptNumber: 2 };
  await recordAttempt(database.sql, attempt, { outcome, address: null });
}
/** Records the attempt of an earlier event of the same application. */
async function recordEarlier(id: string, columns: Columns, outcome: DeliveryOutcome) {
  const earlier = await stored('started', columns);
  await database.sql`
    update deliveries set sequence = 0, application_id = (select application_id from deliveries where notification_id = ${id})
    where notification_id = ${earlier}`;
  await record(earlier, outcome);
}

interface Way {
  readonly given: Row;
  readonly before?: Columns;
  readonly run: (id: string) => PromiseLike<unknown>;
}
const WAYS: readonly (readonly [DeliveryEvent, Way])[] = Object.entries({
  take: {
    given: { taken_at: NOW, due_at: LATER },
    before: { taken_at: null },
    run: () => claimAll(database.sql, { limit: 9, slots: 9, leaseMs: 5_000 }),
  },
  wait: {
    given: {},
    before: { paused_at: BEFORE },
    run: (id) => openAttempt(database.sql, ref(id)),
  },
  park: {
    given: {},
    run: async (id) => {
      await pauseDeliveries(database.db, { partnerId, environment: 'sandbox' }, 'jane');
      await openAttempt(database.sql, ref(id));
    },
  },
  attempt: {
    given: { attempts: 3, taken_at: BEFORE, reserved_month: null, ladder_ms: [...DELIVERY_LADDER_MS] },
    run: (id) => openAttempt(database.sql, ref(id)),
  },
  retry: {
    given: { next_attempt_at: LATER, step: 2, waits_for: 'retry_after', hurried_at: null },
    before: { ladder_ms: '{0,0,0}', hurried_at: '2027-03-01T08:59:00Z' },
    run: (id) => record(id, { ...FAILED, retryAfterMs: 5_000 }),
  },
  pause: {
    given: { paused_by: 'jane' },
    run: (id) => orderDeliveries(database.sql, 'pause', [id], 'jane'),
  },
  resume: {
    given: {},
    before: { paused_at: BEFORE, paused_by: 'jane' },
    run: (id) => orderDeliveries(database.sql, 'resume', [id], 'jane'),
  },
  retry_now: { given: {}, run: (id) => orderDeliveries(database.sql, 'retry_now', [id], 'jane') },
  hold: {
    given: { hold_reason: 'why' },
    run: (id) => endNotification(database.sql, ref(id), { state: 'held', reason: 'why' }),
  },
  put_off: {
    given: { due_at: '2027-03-02T10:01:00+00:00' },
    before: { taken_at: null },
    run: (id) => recordEarlier(id, { step: 0, first_attempt_at: NOW }, FAILED),
  },
  due_now: {
    given: {},
    before: { taken_at: null, due_at: LATER },
    run: (id) => recordEarlier(id, {}, DELIVERED),
  },
} satisfies Partial<Record<DeliveryEvent, Way>>) as [DeliveryEvent, Way][];

test.each(WAYS)('%s', async (event, { given, before: columns, run }) => {
  const change: DeliveryChange = DELIVERY_CHANGES[event];
  const { from, to, newGeneration, now = [], nowIfEmpty = [], clears = [] } = change;
  expect(Object.keys(given).toSorted()).toEqual([...(change.given ?? [])].toSorted());
  for (const state of DELIVERY_STATES) {
    const id = await stored(state, state === 'held' ? {} : columns);
    const [before, end] = [await rowOf('deliveries', id), await rowOf('notifications', id)];
    const after = {
      ...before,
      state: to ?? state,
      generation: newGeneration ? 2 : 1,
      ...Object.fromEntries(now.map((field) => [field, NOW])),
      ...Object.fromEntries(nowIfEmpty.map((field) => [field, before?.[field] ?? NOW])),
      ...Object.fromEntries(clears.map((field) => [field, field === 'step' ? 0 : null])),
      ...given,
    };
    await run(id);
    expect(await rowOf('deliveries', id)).toEqual(from.includes(state) ? after : before);
    expect(await rowOf('notifications', id)).toEqual(end);
  }
});

test.each(Object.values(ENDS))('the end $end', async ({ end, from, ...rest }) => {
  for (const state of NOTIFICATION_STATES) {
    const id = await stored(state);
    const [row, before] = [await rowOf('deliveries', id), await rowOf('notifications', id)];
    const delivers = end === 'delivered';
    if (delivers) await record(id, DELIVERED);
    else await endNotification(database.sql, ref(id), { state: end, reason: 'why' });
    const applies = (from as readonly string[]).includes(state) && state !== 'delivered';
    expect(await rowOf('deliveries', id)).toEqual(applies ? undefined : row);
    expect(await rowOf('notifications', id)).toEqual({
      ...before,
      ...(applies && {
        end_state: end,
        end_reason: delivers ? null : 'why',
        attempts: (END_STATES as readonly string[]).includes(state) ? before?.['attempts'] : 2,
        ended_at: NOW,
        delivered_at: delivers ? NOW : null,
        failed_month: 'countsAsFailed' in rest ? '2027-03-01' : null,
      }),
    });
  }
});
