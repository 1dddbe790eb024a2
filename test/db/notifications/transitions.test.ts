import { sql } from 'drizzle-orm';
import { ulid } from 'ulid';
import { expireHeld } from '../../../db/notifications/expire';
import { giveBack, markStarted, restartNotification } from '../../../db/notifications/claim';
import { holdPending } from '../../../db/notifications/hold';
import { openAttempt } from '../../../db/notifications/open-attempt';
import { openFirstAttempt } from '../../../db/notifications/open-first-attempt';
import { lockNotification } from '../../../db/notifications/read';
import { recordAttempt } from '../../../db/notifications/record-attempt';
import { recordDelivered } from '../../../db/notifications/record-delivered';
import { releaseHeld } from '../../../db/notifications/release';
import { applyEvent } from '../../../db/notifications/transition';
import { createPartner } from '../../../db/catalogue/partners';
import {
  END_STATES,
  mayHappen,
  NOTIFICATION_STATES,
  NOTIFICATION_TRANSITIONS,
  OPEN_STATES,
  type NotificationEvent,
  type NotificationState,
  type Transition,
} from '../../../domain/notification-states';
import { openTestDatabase, type OpenTestDatabase } from '../../support/database';
import { addEndpoint, newKeyRingText, setServiceClock } from '../../support/notifications';

const PARTNER_ID = 'P100001';
const BEFORE = '2027-03-01 09:00:00+00';
const NOW = '2027-03-02 10:00:00+00';
const GIVEN: Readonly<Record<string, string>> = {
  due_at: `'2027-03-03 11:00:00+00'::timestamptz`,
  taken_at: `'2027-03-02 10:00:00+00'::timestamptz`,
  first_attempt_at: `'2027-03-03 11:00:00+00'::timestamptz`,
  end_reason: `'given'`,
  reserved_month: 'null::date',
  failed_month: `'2027-03-01'::date`,
  priority: '1',
  attempts: '2',
  next_attempt_at: `'2027-03-03 11:00:00+00'::timestamptz`,
  recovery_id: `'rcv_1'`,
};
let database: OpenTestDatabase;
let endpointId: string;

beforeAll(async () => {
  database = await openTestDatabase();
  await createPartner(database.db, { partnerId: PARTNER_ID, name: 'Example' });
  ({ endpointId } = await addEndpoint(database, {
    partnerId: PARTNER_ID,
    url: 'https://hook.example/x',
    keyRing: newKeyRingText(),
  }));
});
beforeEach(async () => {
  await database.sql`truncate notifications, delivery_attempts`;
  await endpointIs('active');
  await setServiceClock(database, NOW);
});
afterEach(() => setServiceClock(database, null));
afterAll(() => database.close());

const endpointIs = (state: string) => database.sql`update webhook_endpoints set state = ${state}`;
type Row = Record<string, unknown>;
const COLUMNS = `state, generation, priority, attempts, end_reason, recovery_id, reserved_month::text, failed_month::text,
  ${[
    'due_at',
    'taken_at',
    'started_at',
    'first_attempt_at',
    'checked_at',
    'next_attempt_at',
    'paused_at',
    'delivered_at',
    'ended_at',
    'held_at',
  ]
    .map((field) => `to_char(${field} at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"+00"') as ${field}`)
    .join(', ')}`;
const rowOf = async (id: string): Promise<Row> => ({
  ...(await database.sql.unsafe(`select ${COLUMNS} from notifications where notification_id = $1`, [id]))[0],
});

/** Stores a notification in a state, with a value in every field that may have one there. */
async function stored(
  state: NotificationState,
  { fresh = false, delivered = state === 'delivered' } = {},
): Promise<string> {
  const notificationId = `ntf_${ulid(Date.parse(BEFORE))}`;
  const open = (OPEN_STATES as readonly string[]).includes(state);
  const seen = !fresh && (open || state === 'held');
  await database.sql`insert into notifications ${database.sql({
    notification_id: notificationId,
    event_id: `evt_${ulid()}`,
    event_type: 'credit_application.accepted',
    partner_id: PARTNER_ID,
    environment: 'sandbox',
    application_id: `app_${ulid()}`,
    sequence: 1,
    body: '{}',
    state,
    attempts: fresh ? 0 : 1,
    due_at: BEFORE,
    taken_at: open ? BEFORE : null,
    started_at: seen ? BEFORE : null,
    first_attempt_at: seen ? BEFORE : null,
    checked_at: seen ? BEFORE : null,
    next_attempt_at: open && !fresh ? BEFORE : null,
    paused_at: open && !fresh ? BEFORE : null,
    delivered_at: delivered ? BEFORE : null,
    ended_at: (END_STATES as readonly string[]).includes(state) ? BEFORE : null,
    held_at: state === 'held' ? BEFORE : null,
    end_reason: open || state === 'delivered' ? null : 'before',
    failed_month: state === 'failed' || state === 'expired' ? '2027-02-01' : null,
  })}`;
  return notificationId;
}

/** The row as the table says it is after an event. */
function after(before: Row, event: NotificationEvent, given: Row): Row {
  const {
    to,
    newGeneration,
    now = [],
    nowIfEmpty = [],
    clears = [],
  }: Transition = NOTIFICATION_TRANSITIONS[event];
  return {
    ...before,
    state: to ?? before['state'],
    generation: Number(before['generation']) + (newGeneration ? 1 : 0),
    ...Object.fromEntries(now.map((field) => [field, NOW])),
    ...Object.fromEntries(nowIfEmpty.map((field) => [field, before[field] ?? NOW])),
    ...Object.fromEntries(clears.map((field) => [field, null])),
    ...given,
  };
}
const EVENTS = Object.keys(NOTIFICATION_TRANSITIONS) as NotificationEvent[];

describe.each(EVENTS)('%s', (event) => {
  test.each(NOTIFICATION_STATES)('in state %s does what the table says', async (state) => {
    const id = await stored(state, { delivered: state === 'delivered' || event === 'deliver_again' });
    const before = await rowOf(id);
    const transition: Transition = NOTIFICATION_TRANSITIONS[event];
    const given = Object.fromEntries(
      (transition.given ?? []).map((field) => [field, sql.raw(GIVEN[field] ?? '')]),
    );
    const applied = await database.db.transaction(async (tx) => {
      const row = await lockNotification(tx, id);
      if (row === null) throw new Error('it was stored');
      return applyEvent(tx, row, event, given as never);
    });
    expect(applied).toBe(mayHappen(event, state));
    const texts: Row = {
      due_at: '2027-03-03 11:00:00+00',
      taken_at: NOW,
      first_attempt_at: '2027-03-03 11:00:00+00',
      end_reason: 'given',
      reserved_month: null,
      failed_month: '2027-03-01',
      priority: 1,
      attempts: 2,
      next_attempt_at: '2027-03-03 11:00:00+00',
      recovery_id: 'rcv_1',
    };
    const written = Object.fromEntries((transition.given ?? []).map((field) => [field, texts[field]]));
    expect(await rowOf(id)).toEqual(applied ? after(before, event, written) : before);
  });
});

/** What moves many rows, or does it in one statement, does the same as the table; a field of `null` is not compared. */
describe('a statement of its own', () => {
  const db = () => database.db;
  const first = { notificationId: '', attemptNumber: 1 };
  const delivered = { httpStatus: 200, durationMs: 7, address: null };
  const openedFirst = async (notificationId: string) => {
    await openAttempt(db(), { notificationId, generation: 1 });
    await database.sql`update webhook_endpoints set last_success_at = service_now()`;
  };
  test.each<{
    name: string;
    event: NotificationEvent;
    state: NotificationState;
    given?: Row;
    fresh?: boolean;
    prepare?: (id: string) => Promise<unknown>;
    run: (id: string) => Promise<unknown>;
  }>([
    {
      name: 'markStarted',
      event: 'start',
      state: 'pending',
      run: (id) => markStarted(db(), [{ notificationId: id, generation: 1 } as never]),
    },
    {
      name: 'giveBack',
      event: 'give_back',
      state: 'pending',
      given: { due_at: '2027-03-02 10:00:01+00' },
      run: (id) => giveBack(db(), [{ notificationId: id, generation: 1 } as never], 1_000),
    },
    {
      name: 'restartNotification',
      event: 'restart',
      state: 'started',
      run: (id) => restartNotification(db(), { notificationId: id, generation: 1 }),
    },
    {
      name: 'holdPending',
      event: 'hold',
      state: 'pending',
      given: { end_reason: 'endpoint_disabled' },
      prepare: () => endpointIs('disabled'),
      run: () => holdPending(db(), { partnerId: PARTNER_ID, environment: 'sandbox' }, { limit: 10 }),
    },
    {
      name: 'releaseHeld',
      event: 'release',
      state: 'held',
      given: { due_at: NOW },
      run: () => releaseHeld(db(), { partnerId: PARTNER_ID, environment: 'sandbox' }, { limit: 10 }),
    },
    {
      name: 'expireHeld',
      event: 'expire',
      state: 'held',
      given: { end_reason: 'held_too_long', failed_month: '2027-03-01' },
      prepare: async (id) => {
        await endpointIs('disabled');
        await database.sql`update notifications set held_at = '2027-01-01' where notification_id = ${id}`;
      },
      run: () => expireHeld(db(), { limit: 10 }),
    },
    {
      name: 'openAttempt',
      event: 'attempt',
      state: 'pending',
      fresh: true,
      given: { attempts: 1, taken_at: BEFORE, reserved_month: null },
      run: (notificationId) => openAttempt(db(), { notificationId, generation: 1 }),
    },
    {
      name: 'openFirstAttempt',
      event: 'attempt',
      state: 'pending',
      fresh: true,
      given: { attempts: 1, taken_at: BEFORE, reserved_month: null },
      run: (notificationId) => openFirstAttempt(database.sql, { notificationId, generation: 1 }, endpointId),
    },
    {
      name: 'recordDelivered',
      event: 'deliver',
      state: 'pending',
      fresh: true,
      prepare: openedFirst,
      run: (notificationId) => recordDelivered(database.sql, { ...first, notificationId }, delivered),
    },
    {
      name: 'recordAttempt',
      event: 'deliver',
      state: 'pending',
      fresh: true,
      prepare: openedFirst,
      run: (notificationId) =>
        recordAttempt(
          db(),
          { ...first, notificationId },
          { outcome: { kind: 'delivered', httpStatus: 200, durationMs: 7 }, address: null },
          null,
        ),
    },
  ])(
    '$name does what the table says of $event',
    async ({ event, state, given = {}, fresh, prepare, run }) => {
      const id = await stored(state, { fresh });
      await prepare?.(id);
      const before = await rowOf(id);
      await run(id);
      expect(await rowOf(id)).toEqual(after(before, event, given));
    },
  );
});
