import { applicationEventText } from '../../../contracts/webhook-event';
import { findApplication } from '../../../db/applications/applications';
import { applyOverdueEvents, overdueApplications } from '../../../db/applications/lender-events';
import { waitingFigures } from '../../../db/figures';
import { listOperatorEvents } from '../../../db/audit/operator-events';
import { createPartner } from '../../../db/catalogue/partners';
import type { ApplicationState } from '../../../domain/application-states';
import { describeOperatorEvent } from '../../../domain/operator-event';
import { eventsOf, openApplication, tell } from '../../support/applications';
import { useDatabase } from '../../support/database';
import { until } from '../../../testbed/until';
import { setServiceClock } from '../../../testbed/notifications';
import { startWorkerOverdueEvents } from '../../../worker/overdue-events';

const partnerId = 'P100001';
const database = useDatabase({ poolSize: 20 });

beforeAll(() => createPartner(database.db, { partnerId, name: 'Example' }));

beforeEach(() => clock(0));

const moment = (minute: number) => new Date(Date.UTC(2026, 10, 21, 12, 0, Math.round(minute * 60)));
/** Sets the database's clock to so many minutes after noon. */
const clock = (minute: number) => setServiceClock(database, moment(minute).toISOString());

const told = (id: string, status: ApplicationState, minute: number) =>
  tell(database, id, status, { occurredAt: moment(minute) });
async function openedIn(state: ApplicationState): Promise<string> {
  const { applicationId: id } = await openApplication(database, { partnerId });
  await told(id, state, 0);
  return id;
}
const applyAll = async () => {
  const ids = await overdueApplications(database.db, 1_000);
  return Promise.all(ids.map((id) => applyOverdueEvents(database.db, id, applicationEventText)));
};
/** What the partner is sent: `status<previous`, after having held the sequence and the row against it. */
async function sentOf(id: string): Promise<string[]> {
  const bodies = await eventsOf(database, id);
  expect(bodies.map(({ sequence }) => sequence)).toEqual(bodies.map((_body, at) => at + 1));
  expect(bodies.map(({ data }) => data.previous_status)).toEqual([
    null,
    ...bodies.slice(0, -1).map(({ data }) => data.status),
  ]);
  const story = await findApplication(database.db, id, 'all');
  expect(story?.application).toMatchObject({ state: bodies.at(-1)?.data.status, sequence: bodies.length });
  return bodies.map(({ data }) => data.status);
}
const waitingOf = async (id: string) => {
  const story = await findApplication(database.db, id, 'all');
  return story?.events.filter(({ waitsUntil }) => waitsUntil !== null).map(({ status }) => status);
};
const operatorEventsOf = async (id: string) => {
  const found = await listOperatorEvents(database.db, { since: '2020-01-01', limit: 1_000 });
  return found.filter(({ details }) => details['application_id'] === id);
};

test('`paid_out` on `accepted` waits, and is applied without `activated` when the wait is over', async () => {
  const id = await openedIn('accepted');
  await clock(2);
  expect(await told(id, 'paid_out', 1)).toMatchObject({
    event: { verdict: 'waiting', stateAfter: 'accepted', waitsUntil: moment(12), receivedAt: moment(2) },
  });
  await clock(11.9);
  expect(await overdueApplications(database.db, 10)).toEqual([]);
  // Also when it is asked for by its id.
  expect(await applyOverdueEvents(database.db, id, applicationEventText)).toEqual([]);
  expect(await waitingOf(id)).toEqual(['paid_out']);
  expect(await waitingFigures(database.db)).toEqual({
    waiting: 1,
    oldestSeconds: expect.closeTo(9.9 * 60, 3),
    overdueSeconds: 0,
  });

  await clock(12.5);
  expect(await waitingFigures(database.db)).toMatchObject({ waiting: 1, overdueSeconds: 30 });
  expect(await applyAll()).toHaveLength(1);
  expect(await sentOf(id)).toEqual(['created', 'accepted', 'paid_out']);
  const last = (await eventsOf(database, id)).at(-1);
  expect(last).toMatchObject({
    created_at: moment(12.5).toISOString(),
    data: { previous_status: 'accepted', occurred_at: moment(1).toISOString() },
  });
  expect(await waitingFigures(database.db)).toEqual({ waiting: 0, oldestSeconds: 0, overdueSeconds: 0 });
  const [event, ...more] = await operatorEventsOf(id);
  expect(more).toEqual([]);
  expect(event).toMatchObject({
    kind: 'lender_steps_missing',
    partnerId,
    environment: 'sandbox',
    details: { lender: 'lender_a', state_before: 'accepted', missing: ['activated'], applied: ['paid_out'] },
  });
  expect(describeOperatorEvent('lender_steps_missing', event?.details ?? {})).toMatch(
    new RegExp(`^${id}: paid_out applied to accepted without activated; ask lender_a about REF\\d{5}$`),
  );
});

test('what an end has overtaken is not applied once its wait is over, and contradicts that end', async () => {
  const id = await openedIn('accepted');
  await told(id, 'paid_out', 1);
  await told(id, 'cancelled', 2);
  await clock(10);
  await applyAll();
  expect(await sentOf(id)).toEqual(['created', 'accepted', 'cancelled']);
  expect(await waitingOf(id)).toEqual([]);
  expect(await operatorEventsOf(id)).toMatchObject([
    { kind: 'lender_contradiction', details: { from: 'cancelled', to: 'paid_out' } },
  ]);
});

test('what contradicts a waiting event that is applied is noticed then', async () => {
  const id = await openedIn('accepted');
  await told(id, 'refunded', 1);
  await told(id, 'completed', 2);
  expect(await operatorEventsOf(id)).toEqual([]);
  await clock(15);
  await applyAll();
  expect(await sentOf(id)).toEqual(['created', 'accepted', 'refunded']);
  expect(await operatorEventsOf(id)).toMatchObject([
    { kind: 'lender_steps_missing' },
    { kind: 'lender_contradiction', details: { from: 'refunded', to: 'completed' } },
  ]);
});

test('many workers and the lender at once apply it once, in one history', async () => {
  const ids = await Promise.all(Array.from({ length: 10 }, () => openedIn('accepted')));
  for (const id of ids) await told(id, 'paid_out', 1);
  await clock(10);
  const events = await Promise.all(
    ids.flatMap((id) => [
      ...Array.from({ length: 4 }, () => applyOverdueEvents(database.db, id, applicationEventText)),
      told(id, 'completed', 3).then(() => []),
    ]),
  );
  // What the lender's lock kept out comes with the next round.
  const rest = await applyAll();
  expect([...events, ...rest].flat()).toHaveLength(ids.length);
  for (const id of ids) {
    expect(await sentOf(id)).toEqual(['created', 'accepted', 'paid_out', 'completed']);
    expect(await operatorEventsOf(id)).toHaveLength(1);
  }
});

test('two hundred applications whose events cannot be applied do not keep another waiting', async () => {
  const bad = await openedIn('accepted');
  await told(bad, 'paid_out', 1);
  // The next number of an event would overflow.
  await database.sql`update credit_applications set sequence = 2147483647 where application_id = ${bad}`;
  await database.sql`
    insert into credit_applications
    select (jsonb_populate_record(a, jsonb_build_object('application_id', 'app_' || lpad(n::text, 26, '0'),
      'lender_reference', 'X' || lpad(n::text, 7, '0')))).*
    from credit_applications a, generate_series(1, 199) n where a.application_id = ${bad}`;
  await database.sql`
    insert into lender_events (application_id, lender, environment, lender_event_id, status, occurred_at, verdict, state_after,
      waits_until)
    select 'app_' || lpad(n::text, 26, '0'), lender, environment, lender_event_id || n, status, occurred_at, verdict, state_after,
      waits_until
    from lender_events e, generate_series(1, 199) n where e.application_id = ${bad} and waits_until is not null`;
  await clock(5);
  const good = await openedIn('accepted');
  await told(good, 'paid_out', 4);
  await clock(30);
  const warn = jest.fn();
  const metrics = { lenderStepsMissing: { inc: jest.fn() } };
  const loop = startWorkerOverdueEvents({
    db: database.db,
    logger: { warn } as never,
    metrics: metrics as never,
    everyMs: 50,
  });
  try {
    await until(async () => (await waitingOf(good))?.length === 0, 'the event of the other one', 90_000);
  } finally {
    await loop.stop();
  }
  expect(await sentOf(good)).toEqual(['created', 'accepted', 'paid_out']);
  expect(warn).toHaveBeenCalledTimes(201);
  await database.sql`update lender_events set waits_until = null`;
}, 180_000);
