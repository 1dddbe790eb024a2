import { applicationEventText } from '../../contracts/webhook-event';
import { applyOverdueEvents } from '../../db/applications/lender-events';
import { simulateApplication } from '../../db/applications/simulate';
import { newReference, openApplication, storeQuote, tell } from '../support/applications';
import { advanceServiceClock } from '../../testbed/notifications';
import { PRODUCT_ROW, useOps } from './run';

const ops = useOps({ partners: ['P100001'] });

test('lenders of the test merchants have no service key, no other name and no other product', async () => {
  const refused = async (...args: string[]) => {
    const outcome = await ops.run([...args, '--json']);
    return [outcome.code, outcome.json().error.code];
  };
  const binding = ['--lender', 'test_lender_b', '--environment', 'sandbox'];
  expect(await refused('service-keys', 'create', '--name', 'Gateway', ...binding)).toEqual([1, 'invalid']);
  expect(await refused('lenders', 'set', 'test_lender_b', '--name', 'Mine')).toEqual([1, 'invalid']);
  // Neither by hand.
  await expect(
    ops.database.sql`insert into service_keys (key_id, name, lender, environment, key_hash, last_four)
      values ('svk_2', 'Gateway', 'test_lender_a', 'sandbox', 'x', 'abcd')`,
  ).rejects.toThrow('service_keys_no_test_lender');
});

test('lenders: two are there; others are added and changed, with formats that can be read', async () => {
  expect(await ops.json('lenders list')).toMatchObject([
    { lender: 'lender_a', reference_format: '[A-Za-z0-9]{8}' },
    { lender: 'lender_b', reference_format: '\\d{7}' },
    { lender: 'test_lender_a', name: 'Test Lender A' },
    { lender: 'test_lender_b', name: 'Test Lender B' },
  ]);
  const add = ['lenders', 'create', 'lender_c', '--name', 'Lender C', '--reference-format'];
  expect(await ops.json(...add, '[A-Z]{2}-\\d{4,6}')).toMatchObject({ name: 'Lender C' });
  expect((await ops.run([...add, '\\d{7}'])).code).toBe(1);
  const changed = await ops.json('lenders set lender_c --reference-format', '\\d{9}');
  expect(changed).toMatchObject({ name: 'Lender C', reference_format: '\\d{9}' });
  for (const [args, code] of [
    [['lenders', 'create', 'Lender D', '--name', 'D', '--reference-format', '\\d{9}'], 'usage'],
    [['lenders', 'create', 'lender_d', '--name', 'D', '--reference-format', '(a+)+'], 'invalid'],
    [['lenders', 'set', 'lender_c', '--reference-format', '.*'], 'invalid'],
    [['lenders', 'set', 'lender_c'], 'invalid'],
    [['lenders', 'set', 'lender_z', '--name', 'Z'], 'not_found'],
    [['lenders', 'set', 'lender_c', '--name', 'Z '], 'invalid'],
    [['lenders', 'create', 'lender_d', '--name', '', '--reference-format', '\\d{9}'], 'invalid'],
  ] as const) {
    const outcome = await ops.run([...args, '--json']);
    const exit = code === 'invalid' ? 1 : 2;
    expect([outcome.code, outcome.json().error.code]).toEqual([exit, code]);
  }
  expect(await ops.actionsOn('lender_c')).toEqual(['lenders.set', 'lenders.create']);
});

test('lenders: a rename is a new version of the products of that lender, with the old name behind earlier quotes', async () => {
  await ops.json('lenders create lender_r --name Before --reference-format', '\\d{9}');
  await ops.json('merchants create M310001 --trading-name', 'Example Shop');
  const rows = ['lender_r', 'lender_r', 'lender_a'].map((lender, at) => ({
    ...PRODUCT_ROW,
    merchant_id: 'M310001',
    credit_product: `Product ${at}`,
    lender,
    active: at !== 1,
  }));
  await ops.import('products', rows);
  const versionsOf = async (product: string): Promise<unknown[]> =>
    (await ops.json('products show M310001', product)).versions;
  const rename = ['lenders', 'set', 'lender_r', '--name', 'After'];
  expect(await ops.json(...rename)).toMatchObject({ name: 'After', new_versions: 2 });
  const changed = [{ field: 'lender_name', from: 'Before', to: 'After' }];
  for (const product of ['Product 0', 'Product 1'])
    expect(await versionsOf(product)).toMatchObject([
      { version: 2, lender_name: 'After', changed },
      { version: 1, lender_name: 'Before', changed: null },
    ]);
  expect(await ops.text('products show M310001', 'Product 0')).toContain('    lender_name: Before to After');
  expect(await versionsOf('Product 2')).toMatchObject([{ version: 1, lender_name: 'Lender A' }]);
  // Nothing is left to rename, and an import of the same file changes nothing.
  expect(await ops.json(...rename)).toMatchObject({ new_versions: 0 });
  expect((await ops.import('products', rows)).json()).toMatchObject({ unchanged: 3 });
  const { product_id: productId } = await ops.json('products show M310001', 'Product 0');
  expect(await ops.actionsOn(productId)).toEqual(['lenders.set', 'products.import']);
  const [renamed] = await ops.json('changes list --subject', productId);
  expect(renamed.details).toMatchObject({ version: 2, fields: changed });
});

test('applications: lists and shows what was told and what is sent', async () => {
  const lenderReference = newReference();
  const quote = { partnerId: 'P100001' };
  const { applicationId, quoteId } = await openApplication(ops.database, quote, { lenderReference });
  const other = await openApplication(ops.database, { ...quote, environment: 'live' });
  await tell(ops.database, applicationId, 'paid_out', { lenderEventId: 'le-early' });
  await tell(ops.database, applicationId, 'activated', { lenderEventId: 'le-late' });

  const ids = (...args: string[]) => ops.column('credit_application_id', 'applications list', ...args);
  expect(await ids()).toEqual([other.applicationId, applicationId]);
  for (const filter of [
    '--state paid_out',
    '--state completed,paid_out',
    `--lender lender_a --lender-reference ${lenderReference}`,
    `--quote ${quoteId}`,
    '--partner P100001 --environment sandbox',
  ])
    expect(await ids(...filter.split(' '))).toEqual([applicationId]);
  await ops.json('partners create --name', 'Without applications', '--id', 'P999999');
  expect(await ids('--partner', 'P999999')).toEqual([]);
  expect(await ids('--limit', '1')).toEqual([other.applicationId]);

  expect(await ops.json('applications show', applicationId)).toMatchObject({
    credit_application_id: applicationId,
    state: 'paid_out',
    sequence: 3,
    lender_events: [
      { lender_event_id: 'le-early', outcome_on_arrival: 'waiting', sequence: 3 },
      { lender_event_id: 'le-late', outcome_on_arrival: 'applied', sequence: 2 },
    ],
    notifications: [{ sequence: 1 }, { sequence: 2 }, { sequence: 3, state: 'held' }],
  });
  const out = await ops.text('applications show', applicationId);
  for (const text of [lenderReference, 'le-early', 'credit_application.paid_out'])
    expect(out).toContain(text);
});

test('applications: those that a partner simulates are marked', async () => {
  const quote = await storeQuote(ops.database, { partnerId: 'P100001' });
  const wanted = {
    quoteId: quote.quoteId,
    creditProduct: null,
    story: ['submitted'] as const,
    partnerId: 'P100001',
    keyId: 'key_1',
    requestId: 'rq_1',
  };
  const answer = await simulateApplication(ops.database.db, wanted, applicationEventText);
  const { applicationId = '' } = answer.kind === 'created' ? answer.application : {};
  expect(await ops.json('applications show', applicationId)).toMatchObject({
    simulated: true,
    key_id: 'key_1',
    lender_events: [{ status: 'submitted', key_id: 'key_1' }],
  });
  const listed = await ops.json('applications list');
  for (const one of listed) expect(one.simulated).toBe(one.credit_application_id === applicationId);
  expect(listed.length).toBeGreaterThan(1);
  expect(await ops.text('applications list --quote', quote.quoteId)).toMatch(/ simulated [\s\S]* yes /);
});

test('applications: shows what waits, since when and until when, and `events` what was applied without the steps before it', async () => {
  const { applicationId } = await openApplication(ops.database, { partnerId: 'P100001' });
  await tell(ops.database, applicationId, 'accepted');
  const told = await tell(ops.database, applicationId, 'paid_out', { lenderEventId: 'le-waits' });
  if (told.kind !== 'recorded') throw new Error(told.kind);
  const [received_at, waits_until] = [told.event.receivedAt, told.event.waitsUntil].map((at) => at?.toJSON());
  const waiting = { lender_event_id: 'le-waits', status: 'paid_out', received_at, waits_until };
  expect(await ops.json('applications list --waiting')).toMatchObject([
    { credit_application_id: applicationId, state: 'accepted', waiting: [waiting] },
  ]);
  const listed = await ops.text('applications list --waiting --wide');
  expect(listed).toContain(`paid_out since ${received_at} until ${waits_until}`);
  const shown = await ops.json('applications show', applicationId);
  expect(shown.lender_events[1]).toMatchObject({ outcome_on_arrival: 'waiting', ...waiting });

  await advanceServiceClock(ops.database, 601);
  await applyOverdueEvents(ops.database.db, applicationId, applicationEventText);
  expect(await ops.json('applications list --waiting')).toEqual([]);
  expect(await ops.json('events list --kind lender_steps_missing')).toMatchObject([
    { partner_id: 'P100001', details: { application_id: applicationId, missing: ['activated'] } },
  ]);
});

test('applications: shows what its lender contradicted, as the list of events does', async () => {
  const { applicationId } = await openApplication(ops.database, { partnerId: 'P100001' });
  await tell(ops.database, applicationId, 'declined', { occurredAt: new Date('2026-11-20T12:00:00Z') });
  expect(await ops.text('applications show', applicationId)).not.toContain('What the service noticed');
  await tell(ops.database, applicationId, 'accepted', { occurredAt: new Date('2026-11-20T12:00:07Z') });
  const said = `${applicationId}: accepted reported after declined, not applied and not sent; ask lender_a which is true of`;
  expect(await ops.text('applications show', applicationId)).toMatch(
    new RegExp(`What the service noticed:\\n  \\S+ \\S+Z lender_contradiction: ${said} REF`),
  );
  const details = { from: 'declined', to: 'accepted', occurred_at: '2026-11-20T12:00:07.000Z' };
  const expected = { kind: 'lender_contradiction', details };
  expect(await ops.json('applications show', applicationId)).toMatchObject({ operator_events: [expected] });
  expect(await ops.json('events list --kind lender_contradiction --since 400d')).toMatchObject([expected]);
});
