import { hashKey } from '../../db/keys';
import { findServiceKeysByHash, issueServiceKey, serviceKeyChanges } from '../../db/service-keys';
import { useApi } from '../support/api';
import { internalClient, type InternalClient } from '../support/internal-api';
import { refusal, type Answer } from '../../testbed/http-call';
import { newReference } from '../support/applications';
import { SHOP } from '../support/merchants';

const api = useApi();
let own: InternalClient;
let otherLender: InternalClient;
let otherEnvironment: InternalClient;
beforeAll(async () => {
  own = await internalClient(api);
  otherLender = await internalClient(api, { lender: 'lender_b' });
  otherEnvironment = await internalClient(api, { environment: 'live' });
});

const BINDING = { lender: 'lender_b', environment: 'live' } as const;
const issue = (expiresInSeconds: number | null = null) =>
  issueServiceKey(api.database.db, { name: 'Lender A gateway', ...BINDING, expiresInSeconds });
const expire = (keyId: string) =>
  api.database
    .sql`update service_keys set expires_at = now() - interval '1 millisecond' where key_id = ${keyId}`;
/** 404 with a key that is accepted: there is no such application. */
const statusOf = async (key: string) =>
  (await own.call({ method: 'GET', path: '/internal/v1/credit-applications/app_1', key })).status;

test('a key works as soon as it has been issued, and is stored as a hash and its last four', async () => {
  const { key, summary } = await issue();
  expect(key).toMatch(/^svc_[0-9A-Za-z]{32}$/);
  expect(await statusOf(key)).toBe(404);
  expect(summary).toMatchObject({ name: 'Lender A gateway', lastFour: key.slice(-4), state: 'active' });
  const rows = await api.database.sql`select k::text as "all" from service_keys k`;
  expect(JSON.stringify(rows)).not.toContain(key.slice(4, -4));
  expect(await findServiceKeysByHash(api.database.db, [hashKey(key)])).toEqual(
    new Map([[hashKey(key).toString('hex'), summary]]),
  );
});

// Other keys that are refused are tried in test/hostile/headers.test.ts, on both listeners.
test('a partner’s key opens nothing on the internal listener, nor a service key on the public one', async () => {
  for (const key of [api.keys.test, api.keys.live]) expect(await statusOf(key)).toBe(401);
  expect((await api.quote({}, { key: own.key })).status).toBe(401);
});

test('an expired, an inactive and a revoked key are refused at once', async () => {
  const expiring = await issue(3_600);
  expect(await statusOf(expiring.key)).toBe(404);
  await expire(expiring.summary.keyId);
  expect(await statusOf(expiring.key)).toBe(401);

  const { key, summary } = await issue();
  await serviceKeyChanges.setState(api.database.db, summary.keyId, 'inactive');
  expect(await statusOf(key)).toBe(401);
  await serviceKeyChanges.setState(api.database.db, summary.keyId, 'active');
  expect(await statusOf(key)).toBe(404);
  expect(await serviceKeyChanges.revoke(api.database.db, summary.keyId)).toMatchObject({ changed: true });
  expect(await statusOf(key)).toBe(401);
  await expect(serviceKeyChanges.setState(api.database.db, summary.keyId, 'active')).rejects.toMatchObject({
    kind: 'conflict',
  });
});

// Both kinds of keys are rotated by one function: test/db/keys.test.ts, test/ops/commands.test.ts.

test.each<[Partial<Record<'name' | 'lender', string>>, string]>([
  [{ name: ' ' }, 'invalid'],
  [{ name: 'x'.repeat(121) }, 'invalid'],
  [{ lender: 'lender_z' }, 'not_found'],
])('a key for %j is refused: %s', async (wanted, kind) => {
  const key = { name: 'x', ...BINDING, expiresInSeconds: null, ...wanted };
  await expect(issueServiceKey(api.database.db, key)).rejects.toMatchObject({ kind });
});

// A service key gives access to one lender and one environment; everything else does not exist for it.

const quoted = async (key = api.keys.test) =>
  (await api.quote({ merchant_id: SHOP }, { key })).body.data.products[0].merchant_finance_url as string;
const opened = async () => (await own.openLink(await quoted())).body.data.credit_application_id as string;
let events = 0;
const event = () => ({
  lender_event_id: `scope-${(events += 1)}`,
  status: 'submitted',
  occurred_at: '2026-11-21T12:00:00Z',
});

const stored = async () => {
  const rows = await api.database.sql`
    select (select count(*) from credit_applications) as applications, (select count(*) from lender_events) as events,
      (select count(*) from notifications_now) as notifications, (select max(updated_at) from credit_applications) as newest`;
  return JSON.stringify(rows);
};
/** What a caller can see of an answer, but for its request's id. */
const shape = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _id, date: _date, ...rest } = headers;
  return { status, rest, text };
};
const warnings = () => api.logged('a service key was used for what belongs to another');

const NOBODYS = 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6';

test.each([
  ['of another lender', () => otherLender],
  ['of the other environment', () => otherEnvironment],
])('an application is for a key %s as one that does not exist', async (_whose, client) => {
  const id = await opened();
  const before = [await stored(), (await own.read(id)).text];
  const warned = warnings().length;
  for (const ask of [(of: string) => client().read(of), (of: string) => client().tell(of, event())]) {
    const [theirs, nobodys] = [await ask(id), await ask(NOBODYS)];
    expect(theirs).toMatchObject(refusal(404, 'APPLICATION_NOT_FOUND'));
    expect(shape(theirs)).toEqual(shape(nobodys));
  }
  expect([await stored(), (await own.read(id)).text]).toEqual(before);
  // One line for each that exists, none for what does not.
  expect(warnings().slice(warned)).toMatchObject([
    { keyId: client().keyId, applicationId: id },
    { keyId: client().keyId, applicationId: id },
  ]);
});

test('an application of another lender cannot be opened, whether there is such a lender or not', async () => {
  const link = await quoted();
  const before = await stored();
  const openFor = (lender: string) => own.open({ lender, lender_reference: '1234567', finance_link: link });
  const [theirs, nobodys] = [await openFor('lender_b'), await openFor('lender_z')];
  expect(theirs).toMatchObject(refusal(404, 'LENDER_NOT_FOUND', { field: 'lender' }));
  expect(shape(theirs)).toEqual(shape(nobodys));
  expect(await stored()).toBe(before);
  expect(warnings().at(-2)).toMatchObject({ keyId: own.keyId, keyLender: 'lender_a', lender: 'lender_b' });
});

test('a quote of the other environment does not exist, neither for a sandbox key nor for a live one', async () => {
  for (const [client, link] of [
    [own, await quoted(api.keys.live)],
    [otherEnvironment, await quoted(api.keys.test)],
  ] as const) {
    const before = await stored();
    const theirs = await client.openLink(link);
    const quoteId = new URL(link).searchParams.get('service_quote_id') ?? '';
    expect(theirs).toMatchObject(refusal(404, 'QUOTE_NOT_FOUND'));
    expect(warnings().at(-1)).toMatchObject({ keyId: client.keyId, quoteId });
    const warned = warnings().length;
    const nobodys = await client.openLink(link.replace(quoteId, 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'));
    expect(shape(theirs)).toEqual(shape(nobodys));
    expect(warnings()).toHaveLength(warned);
    expect(await stored()).toBe(before);
  }
});

test('an application that is open is not answered again to a key of the other environment', async () => {
  const [link, reference] = [await quoted(), newReference()];
  expect((await own.openLink(link, reference)).status).toBe(200);
  expect(await otherEnvironment.openLink(link, reference)).toMatchObject(refusal(404, 'QUOTE_NOT_FOUND'));
});

test('a reference and an event id of its own say nothing of those of others', async () => {
  const id = await opened();
  const told = event();
  expect((await own.tell(id, told)).status).toBe(200);
  const { lender_reference: reference } = (await own.read(id)).body.data;
  const { body } = await otherEnvironment.openLink(await quoted(api.keys.live), reference);
  const live = body.data.credit_application_id as string;
  expect((await otherEnvironment.tell(live, told)).body.data).toMatchObject({ outcome: 'applied' });
});
