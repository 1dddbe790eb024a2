import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { assert, asyncProperty, constantFrom, integer, nat, record, uniqueArray } from 'fast-check';
import { findApplication } from '../../../db/applications/applications';
import { createPartner } from '../../../db/catalogue/partners';
import { APPLICATION_STATES, mayFollow, STORIES, TRANSITIONS } from '../../../domain/application-states';
import { eventsOf, openApplication, tell } from '../../support/applications';
import { useDatabase } from '../../support/database';
import { setServiceClock } from '../../../testbed/notifications';

const partnerId = 'P100001';
const database = useDatabase({ poolSize: 20 });

beforeAll(() => createPartner(database.db, { partnerId, name: 'Example' }));

afterEach(() => setServiceClock(database, null));

const storyOf = async (applicationId: string) => {
  const story = await findApplication(database.db, applicationId, 'all');
  if (story === null) throw new Error('there is no such application');
  return story;
};

test('opening an application keeps what the quote says, and tells its partner', async () => {
  await setServiceClock(database, '2026-11-21 12:00:00+00');
  const quote = { partnerId, environment: 'live' } as const;
  const references = { lenderReference: 'AB12CD34', merchantReference: 'basket 2041' };
  const { applicationId, quoteId } = await openApplication(database, quote, references);
  expect(applicationId).toMatch(/^app_[0-9A-HJKMNP-TV-Z]{26}$/);
  expect(await storyOf(applicationId)).toMatchObject({
    application: { state: 'created', environment: 'live', merchantId: 'M000001', sequence: 1 },
    events: [],
    notifications: [{ sequence: 1, eventType: 'credit_application.created', state: 'held' }],
  });
  expect(await eventsOf(database, applicationId)).toEqual([
    {
      event_id: expect.stringMatching(/^evt_/),
      event_type: 'credit_application.created',
      api_version: 'v1',
      environment: 'live',
      created_at: '2026-11-21T12:00:00.000Z',
      sequence: 1,
      data: {
        credit_application_id: applicationId,
        service_quote_id: quoteId,
        merchant_reference: 'basket 2041',
        merchant_id: 'M000001',
        lender: 'lender_a',
        lender_reference: 'AB12CD34',
        status: 'created',
        previous_status: null,
        loan_amount: '900.00',
        customer_deposit: '100.00',
        occurred_at: '2026-11-21T12:00:00.000Z',
        credit_product: 'Classic 12',
      },
    },
  ]);
  // A field that came later is the last.
  const [row] = await database.sql`select body from notifications where application_id = ${applicationId}`;
  expect(row?.['body']).toMatch(/,"credit_product":"Classic 12"}}$/);
});

test('what a lender dates ahead makes nothing late that comes after it', async () => {
  const { applicationId } = await openApplication(database, { partnerId });
  await tell(database, applicationId, 'signed', { occurredAt: new Date(Date.now() + 240_000) });
  await tell(database, applicationId, 'action_required');
  expect((await storyOf(applicationId)).application.state).toBe('action_required');
});

test('a change whose notification cannot be stored is no change', async () => {
  const { applicationId } = await openApplication(database, { partnerId });
  const submit = () => tell(database, applicationId, 'submitted', { lenderEventId: 'le-lost' });
  await database.sql`alter table notifications add constraint nothing_more check (false) not valid`;
  try {
    await expect(submit()).rejects.toThrow('nothing_more');
  } finally {
    await database.sql`alter table notifications drop constraint nothing_more`;
  }
  const application = { state: 'created', sequence: 1 };
  expect(await storyOf(applicationId)).toMatchObject({ application, events: [] });
  expect(await submit()).toMatchObject({ isNew: true });
});

test('whatever is told, in whatever order and each twice, makes one history', async () => {
  const told = uniqueArray(record({ status: constantFrom(...APPLICATION_STATES), minute: nat(30) }), {
    minLength: 1,
    maxLength: 12,
    selector: ({ status, minute }) => `${status} ${minute}`,
  });
  const holds = asyncProperty(told, integer({ min: 1, max: 4 }), async (all, atATime) => {
    const { applicationId } = await openApplication(database, { partnerId });
    for (let from = 0; from < all.length; from += atATime) {
      const some = all.slice(from, from + atATime);
      const answers = [...some, ...some].map(({ status, minute }) =>
        tell(database, applicationId, status, {
          lenderEventId: `${applicationId} ${status} ${minute}`,
          occurredAt: new Date(Date.UTC(2026, 10, 21, 0, minute)),
        }),
      );
      for (const { kind } of await Promise.all(answers)) expect(kind).toBe('recorded');
    }
    // Every step is allowed, there is no gap, and the row, the events and what the partner is sent agree.
    const { application, events } = await storyOf(applicationId);
    const sent = await eventsOf(database, applicationId);
    expect(sent.map(({ sequence }) => sequence)).toEqual(sent.map((_event, before) => before + 1));
    for (const [before, { data }] of sent.slice(1).entries()) {
      expect(data.previous_status).toBe(sent[before]?.data.status);
      expect(mayFollow(data.previous_status ?? 'created', data.status)).toBe(true);
    }
    expect(application).toMatchObject({ state: sent.at(-1)?.data.status, sequence: sent.length });
    expect(events).toHaveLength(all.length);
    const applied = events.flatMap(({ appliedAt, sequence, status }) =>
      appliedAt === null ? [] : [{ sequence, status }],
    );
    expect(applied.toSorted((a, b) => (a.sequence ?? 0) - (b.sequence ?? 0))).toEqual(
      sent.slice(1).map(({ sequence, data }) => ({ sequence, status: data.status })),
    );
  });
  await assert(holds, { numRuns: 15 });
});

describe('what names the states of an application beside domain/application-states.ts, where types do not look', () => {
  const read = (file: string) => readFileSync(join(__dirname, '../../..', file), 'utf8');
  const missingIn = (text: string, quote: string, states: readonly string[]) =>
    states.filter((state) => !text.includes(quote + state + quote));

  test('the guide says what each state means and names each story, and the shop has words for each state', () => {
    const guide = read('docs/partner-guide.md');
    const [, means = ''] = /^### What each state means$([\s\S]*?)^### /m.exec(guide) ?? [];
    expect(missingIn(means, '`', APPLICATION_STATES)).toEqual([]);
    const [, stories = ''] = /`story` records([\s\S]*?)\. /.exec(guide) ?? [];
    expect(missingIn(stories, '`', Object.keys(STORIES))).toEqual([]);
    const [, words = ''] = /WORDS = \{([\s\S]*?)\n\}/.exec(read('dev/shop/page/order.js')) ?? [];
    expect(APPLICATION_STATES.filter((state) => !words.includes(`\n  ${state}: '`))).toEqual([]);
  });

  test('the retention keeps no quote for a state that nothing follows', async () => {
    const [row] = await database.sql`
      select pg_get_functiondef('ids_that_stay(text, text, text)'::regprocedure) as ids_that_stay,
        pg_get_indexdef('credit_applications_open_quote'::regclass) as credit_applications_open_quote`;
    const last = APPLICATION_STATES.filter((state) => TRANSITIONS[state].length === 0);
    for (const [name, text] of Object.entries(row ?? {}))
      expect({ name, missing: missingIn(String(text), "'", last) }).toEqual({ name, missing: [] });
    expect(Object.keys(row ?? {})).toHaveLength(2);
  });
});
