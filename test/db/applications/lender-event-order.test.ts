import {
  array,
  assert,
  asyncProperty,
  constantFrom,
  integer,
  nat,
  record,
  shuffledSubarray,
  uniqueArray,
} from 'fast-check';
import { applicationEventSchema, type ApplicationEvent } from '../../../contracts/webhook-event';
import { findApplication } from '../../../db/applications/applications';
import { createPartner } from '../../../db/catalogue/partners';
import { APPLICATION_STATES, mayFollow, type ApplicationState } from '../../../domain/application-states';
import { openApplication, tell } from '../../support/applications';
import { useDatabase } from '../../support/database';

const partnerId = 'P100001';
const database = useDatabase({ poolSize: 20 });

beforeAll(async () => {
  await createPartner(database.db, { partnerId, name: 'Example' });
});

interface Told {
  readonly status: ApplicationState;
  readonly minute: number;
}

const at = (minute: number) => new Date(Date.UTC(2026, 10, 21, 0, minute));

/** Tells all of it, so many at a time, every one of them twice. @returns the application's id. */
async function tellAll(told: readonly Told[], atATime: number): Promise<string> {
  const { applicationId } = await openApplication(database, { partnerId });
  for (let from = 0; from < told.length; from += atATime) {
    const some = told.slice(from, from + atATime);
    const answers = await Promise.all(
      [...some, ...some].map(({ status, minute }) =>
        tell(database, applicationId, status, {
          lenderEventId: `${applicationId} ${status} ${minute}`,
          occurredAt: at(minute),
        }),
      ),
    );
    expect(new Set(answers.map(({ kind }) => kind))).toEqual(new Set(['recorded']));
  }
  return applicationId;
}

/** One history: every step allowed, no gap, and the row, the events and what the partner is told say the same. */
async function expectOneHistory(applicationId: string, told: readonly Told[]): Promise<ApplicationEvent[]> {
  const story = await findApplication(database.db, applicationId, 'all');
  const rows = await database.sql<{ body: string }[]>`
    select body from notifications_now where application_id = ${applicationId} order by sequence`;
  const sent = rows.map(({ body }) => applicationEventSchema.parse(JSON.parse(body)));
  expect(sent.map(({ sequence }) => sequence)).toEqual(sent.map((_event, before) => before + 1));
  for (const [before, { data }] of sent.slice(1).entries()) {
    expect(data.previous_status).toBe(sent[before]?.data.status);
    expect(mayFollow(data.previous_status ?? 'created', data.status)).toBe(true);
  }
  expect(story?.application).toMatchObject({ state: sent.at(-1)?.data.status, sequence: sent.length });
  expect(story?.events).toHaveLength(told.length);
  const applied = story?.events
    .filter(({ appliedAt }) => appliedAt !== null)
    .toSorted((a, b) => (a.sequence ?? 0) - (b.sequence ?? 0));
  expect(applied?.map(({ sequence, status }) => [sequence, status])).toEqual(
    sent.slice(1).map(({ sequence, data }) => [sequence, data.status]),
  );
  return sent;
}

test('twenty at once, in any order, make one history', async () => {
  const told = APPLICATION_STATES.flatMap((status, minute) => [
    { status, minute },
    { status, minute: minute + 100 },
  ]).slice(0, 20);
  for (const mixed of [told, told.toReversed()]) {
    const applicationId = await tellAll(mixed, 20);
    await expectOneHistory(applicationId, mixed);
  }
});

test('whatever is told, in whatever order, makes one history', async () => {
  const anything = uniqueArray(record({ status: constantFrom(...APPLICATION_STATES), minute: nat(30) }), {
    minLength: 1,
    maxLength: 12,
    selector: ({ status, minute }) => `${status} ${minute}`,
  });
  await assert(
    asyncProperty(anything, integer({ min: 1, max: 4 }), async (told, atATime) => {
      await expectOneHistory(await tellAll(told, atATime), told);
    }),
    { numRuns: 15 },
  );
});

/** A way that leads only forward, of at least one step, from `created` on. */
const forwardWay = array(nat(1_000), { minLength: 1, maxLength: 10 }).map((choices) => {
  const way: ApplicationState[] = ['created'];
  for (const choice of choices) {
    const from = way.at(-1) ?? 'created';
    const place = APPLICATION_STATES.indexOf(from);
    const next = APPLICATION_STATES.filter((to, at) => at > place && mayFollow(from, to));
    const step = next[choice % Math.max(1, next.length)];
    if (step !== undefined) way.push(step);
  }
  return way.slice(1).map((status, minute) => ({ status, minute }));
});

test('a way that leads forward ends where it leads, in whatever order it is told', async () => {
  const told = forwardWay.chain((way) =>
    shuffledSubarray(way, { minLength: way.length }).map((mixed) => ({ way, mixed })),
  );
  await assert(
    asyncProperty(told, integer({ min: 1, max: 4 }), async ({ way, mixed }, atATime) => {
      const sent = await expectOneHistory(await tellAll(mixed, atATime), mixed);
      expect(sent.at(-1)?.data.status).toBe(way.at(-1)?.status);
    }),
    { numRuns: 20 },
  );
});
