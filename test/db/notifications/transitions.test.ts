import { ulid } from 'ulid';
import { createPartner } from '../../../db/catalogue/partners';
import { endNotification, openAttempt, recordAttempt } from '../../../db/notifications/attempt';
import { claimDue } from '../../../db/notifications/claim';
import { expireHeld, holdQueued } from '../../../db/notifications/hold';
import { resendNotification } from '../../../db/notifications/resend';
import {
  DELIVERY_CHANGES,
  DELIVERY_STATES,
  END_STATES,
  ENDS,
  isOpen,
  mayHappen,
  NOTIFICATION_STATES,
  type DeliveryChange,
  type DeliveryEvent,
  type EndState,
  type NotificationState,
} from '../../../domain/notification-states';
import type { DeliveryOutcome } from '../../../domain/delivery-outcome';
import { useDatabase } from '../../support/database';
import { addEndpoint, newKeyRingText, putInState, setServiceClock } from '../../support/notifications';

const PARTNER_ID = 'P100001';
const BEFORE = '2027-03-01 09:00:00+00';
const NOW = '2027-03-02 10:00:00+00';
const LATER = '2027-03-02 10:00:05+00';
const TENANT = { partnerId: PARTNER_ID, environment: 'sandbox' } as const;
const database = useDatabase();

beforeAll(async () => {
  await createPartner(database.db, { partnerId: PARTNER_ID, name: 'Example' });
  await addEndpoint(database, {
    partnerId: PARTNER_ID,
    url: 'https://hook.example/x',
    keyRing: newKeyRingText(),
  });
});
beforeEach(async () => {
  await database.sql`truncate notifications, deliveries, delivery_attempts, monthly_counts`;
  await endpointIs('active');
  await setServiceClock(database, NOW);
});
afterEach(() => setServiceClock(database, null));
const endpointIs = (state: string) => database.sql`update webhook_endpoints set state = ${state}`;
type Row = Record<string, unknown>;
const MOMENTS = [
  'due_at',
  'taken_at',
  'started_at',
  'first_attempt_at',
  'next_attempt_at',
  'paused_at',
  'held_at',
  'checked_at',
] as const;
const asText = (field: string) =>
  `to_char(${field} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"+00"') as ${field}`;
const DELIVERY = `state, generation, attempts, step, priority, hold_reason, reserved_month::text, ${MOMENTS.map(asText).join(', ')}`;
const END = `end_state, end_reason, generation, attempts, failed_month::text, recovery_id, ${asText('ended_at')}, ${asText('delivered_at')}`;
const read = async (columns: string, table: string, id: string): Promise<Row | undefined> => {
  const rows = await database.sql.unsafe(`select ${columns} from ${table} where notification_id = $1`, [id]);
  return rows[0] && { ...rows[0] };
};
const deliveryOf = (id: string) => read(DELIVERY, 'deliveries', id);
const endOf = (id: string) => read(END, 'notifications', id);

/** Stores a notification in a state, with a value in every field that may have one there. */
async function stored(state: NotificationState, more: Record<string, string | number | null> = {}) {
  const id = `ntf_${ulid(Date.parse(BEFORE))}`;
  await database.sql`insert into notifications ${database.sql({
    notification_id: id,
    event_id: `evt_${ulid()}`,
    event_type: 'credit_application.accepted',
    partner_id: PARTNER_ID,
    environment: 'sandbox',
    application_id: `app_${ulid()}`,
    sequence: 1,
    body: '{}',
    attempts: 2,
  })}`;
  const moments = { due_at: BEFORE, started_at: BEFORE, first_attempt_at: BEFORE, checked_at: BEFORE };
  const open = isOpen(state) && { taken_at: BEFORE, next_attempt_at: BEFORE };
  await putInState(database, id, state, { ...moments, ...open, step: 1, ...more });
  return id;
}

/** The row as the table says it is after an event. */
function after(before: Row | undefined, event: DeliveryEvent, given: Row): Row {
  const change: DeliveryChange = DELIVERY_CHANGES[event];
  const { to, newGeneration, now = [], nowIfEmpty = [], clears = [] } = change;
  expect(Object.keys(given).toSorted()).toEqual([...(change.given ?? [])].toSorted());
  return {
    ...before,
    state: to ?? before?.['state'],
    generation: Number(before?.['generation']) + (newGeneration ? 1 : 0),
    ...Object.fromEntries(now.map((field) => [field, NOW])),
    ...Object.fromEntries(nowIfEmpty.map((field) => [field, before?.[field] ?? NOW])),
    ...Object.fromEntries(clears.map((field) => [field, field === 'step' ? 0 : null])),
    ...given,
  };
}

const failed: DeliveryOutcome = {
  kind: 'failed',
  failure: 'http_status',
  httpStatus: 503,
  durationMs: 7,
  retryAfterMs: null,
};
const delivered: DeliveryOutcome = { kind: 'delivered', httpStatus: 200, durationMs: 7 };
const openRow = (id: string, generation = 1) => database.sql`
  insert into delivery_attempts (notification_id, attempt_number, generation, endpoint_id, started_at)
  values (${id}, 2, ${generation}, 'whe_x', ${BEFORE})`;
const record = (id: string, outcome: DeliveryOutcome, retryInMs: number | null = null) =>
  recordAttempt(
    database.sql,
    { notificationId: id, attemptNumber: 2 },
    { outcome, address: null },
    null,
    retryInMs,
  );

/** The events that claim.sql, open.sql and record.sql apply: updateText makes the SQL of all others from the table itself. */
const WAYS: Readonly<
  Partial<
    Record<
      DeliveryEvent,
      {
        readonly given: Row;
        readonly before?: Record<string, string | number | null>;
        readonly prepare?: (id: string) => PromiseLike<unknown>;
        readonly run: (id: string) => PromiseLike<unknown>;
      }
    >
  >
> = {
  take: {
    given: { taken_at: NOW, due_at: LATER },
    before: { taken_at: null },
    run: () => claimDue(database.sql, { limit: 9, slots: 9, leaseMs: 5_000, turn: null }),
  },
  wait: {
    given: {},
    before: { paused_at: BEFORE },
    run: (id) => openAttempt(database.sql, { notificationId: id, generation: 1 }, { told: false }),
  },
  attempt: {
    given: { attempts: 3, taken_at: BEFORE, reserved_month: null },
    run: (id) => openAttempt(database.sql, { notificationId: id, generation: 1 }),
  },
  retry: {
    given: { next_attempt_at: LATER, step: 2 },
    prepare: openRow,
    run: (id) => record(id, failed, 5_000),
  },
  hold: {
    given: { hold_reason: 'webhook_not_registered' },
    run: (id) =>
      endNotification(
        database.sql,
        { notificationId: id, generation: 1 },
        { state: 'held', reason: 'webhook_not_registered' },
      ),
  },
  // Of another one of the application: its first attempt fails, it ends.
  put_off: {
    given: { due_at: '2027-03-02 10:01:00+00' },
    before: { taken_at: null },
    run: (id) => ofEarlier(id, { step: 0, first_attempt_at: NOW }, (one) => record(one, failed, 5_000)),
  },
  due_now: {
    given: {},
    before: { taken_at: null, due_at: LATER },
    run: (id) => ofEarlier(id, { step: 1 }, (one) => record(one, delivered)),
  },
};

async function ofEarlier(
  id: string,
  columns: Record<string, string | number | null>,
  task: (earlier: string) => Promise<unknown>,
): Promise<void> {
  const earlier = await stored('started', columns);
  await database.sql`
    update deliveries set sequence = 0, application_id = (select application_id from deliveries where notification_id = ${id})
    where notification_id = ${earlier}`;
  await openRow(earlier);
  await task(earlier);
}

describe.each(Object.entries(WAYS))('%s', (name, { given, before: columns, prepare, run }) => {
  const event = name as DeliveryEvent;
  test.each(DELIVERY_STATES)('in state %s does what the table says', async (state) => {
    const own = state === 'held' ? {} : columns;
    const id = await stored(state, own);
    await prepare?.(id);
    const before = await deliveryOf(id);
    const end = await endOf(id);
    await run(id);
    expect(await deliveryOf(id)).toEqual(mayHappen(event, state) ? after(before, event, given) : before);
    expect(await endOf(id)).toEqual(end);
  });
});

test('holdQueued holds as an end without an endpoint does', async () => {
  const id = await stored('queued');
  await endpointIs('disabled');
  const before = await deliveryOf(id);
  expect(await holdQueued(database.sql, TENANT, { limit: 9 })).toBe(1);
  expect(await deliveryOf(id)).toEqual(after(before, 'hold', { hold_reason: 'endpoint_disabled' }));
});

describe.each(END_STATES)('the end %s', (end: EndState) => {
  test.each(NOTIFICATION_STATES)('in state %s does what the table says', async (state) => {
    const id = await stored(state);
    if (state === 'delivered') await database.sql`update notifications set delivered_at = ${BEFORE}`;
    const before = await endOf(id);
    const row = await deliveryOf(id);
    await openRow(id);
    if (end === 'delivered') await record(id, delivered);
    else
      await endNotification(
        database.sql,
        { notificationId: id, generation: 1 },
        { state: end, reason: 'why' },
      );
    const applies = mayHappen(end, state) && state !== 'delivered';
    const counts = 'countsAsFailed' in ENDS[end];
    expect(await deliveryOf(id)).toEqual(applies ? undefined : row);
    expect(await endOf(id)).toEqual(
      applies
        ? {
            ...before,
            end_state: end,
            end_reason: end === 'delivered' ? null : 'why',
            ended_at: NOW,
            delivered_at: end === 'delivered' ? NOW : null,
            failed_month: counts ? '2027-03-01' : null,
          }
        : before,
    );
  });
});

test('expireHeld ends as the table says', async () => {
  const id = await stored('held', { held_at: '2027-01-01' });
  await endpointIs('disabled');
  await expireHeld(database.db, { limit: 10 });
  expect(await deliveryOf(id)).toBeUndefined();
  expect(await endOf(id)).toMatchObject({ end_state: 'expired', end_reason: 'held_too_long', attempts: 2 });
});

test.each([...END_STATES, 'held'] as const)(
  'a resend of one that is %s gives it a row as new, and no end',
  async (state) => {
    const id = await stored(state);
    await database.db.transaction((tx) => resendNotification(tx, id, { priority: 1, recoveryId: 'rcv_1' }));
    expect(await endOf(id)).toMatchObject({
      end_state: null,
      end_reason: null,
      ended_at: null,
      recovery_id: 'rcv_1',
    });
    expect(await deliveryOf(id)).toMatchObject({
      state: 'queued',
      generation: 2,
      attempts: 2,
      step: 0,
      priority: 1,
      due_at: NOW,
      first_attempt_at: null,
      next_attempt_at: null,
    });
  },
);
