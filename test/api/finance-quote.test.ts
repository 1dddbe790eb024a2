import { quoteResponseSchema } from '../../contracts/quote-response';
import { createPartner } from '../../db/catalogue/partners';
import { decodeFitted } from '../../db/quotes/store';
import { INTEREST_FREE } from '../domain/builders';
import { useApi } from '../support/api';
import { goodQuote } from '../../testbed/values';
import { readFinanceLink, summaryLink } from '../support/finance-link';
import { type Answer, refusal } from '../../testbed/http-call';
import { addMerchant } from '../support/merchants';
import { visibleText } from '../support/visible-text';

const api = useApi();
beforeAll(async () => {
  const { database } = api;
  await createPartner(database.db, { partnerId: 'P200002', name: 'Somebody else' });
  await addMerchant(database, 'M100001', {
    products: [
      { creditProduct: 'Classic 12' },
      { creditProduct: 'Interest free 10', ...INTEREST_FREE, numberOfRepayments: 10 },
      { creditProduct: 'Big loans', minLoanPence: 200_000, maxLoanPence: 500_000 },
    ],
  });
  await addMerchant(database, 'M100002', { depositFloor: { basisPoints: 1_000, fixedPence: 0 } });
  await addMerchant(database, 'M100003', { fcaAuthorised: false });
  await addMerchant(database, 'M100004', {
    showProducts: false,
    depositFloor: { basisPoints: 0, fixedPence: 5_000 },
  });
  await addMerchant(database, 'M1000070', { partnerAccess: 'restricted', partnerIds: ['P200002'] });
  await addMerchant(database, 'M1000071', { partnerAccess: 'restricted', partnerIds: ['P100001'] });
  await addMerchant(database, 'AB-1C2D-3E4F-5G6H', {});
  await addMerchant(database, 'M100008', { tradingName: null, products: [] });
  await addMerchant(database, 'M100011', { fcaAuthorised: false, products: [] });
  await addMerchant(database, 'M100012', { fcaAuthorised: false, tradingName: null, products: [] });
});

const linkOf = (answer: Answer) => summaryLink(answer.body.data);

test('answers a quote with its products, summary and links, in the contract form', async () => {
  const answer = await api.quote({ merchant_id: 'M100001', merchant_reference: '  basket 20.41-a_b ' });
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(quoteResponseSchema.strict().parse(answer.body)).toEqual(answer.body);
  const { data } = answer.body;
  expect(data.service_quote_id).toMatch(/^qte_[0-9A-HJKMNP-TV-Z]{26}$/);
  expect(data.merchant_reference).toBe('basket 20.41-a_b');
  expect(data).not.toHaveProperty('products_notice');
  expect(data).not.toHaveProperty('deposit_adjustment');
  const names = data.products.map((product: { credit_product: string }) => product.credit_product);
  expect(names).toEqual(['Classic 12', 'Interest free 10']);
  // Every field of a product is compared with the example of the contract in documentation.test.ts.
  expect(data.products[0]).toMatchObject({ lender: 'Example Bank', monthly_repayment: '78.91' });
  expect(readFinanceLink(data.products[1].merchant_finance_url)).toMatchObject({
    quoteId: data.service_quote_id,
    creditProduct: 'Interest free 10',
  });
  const { finance_offer_summary: summary, display } = data.summary;
  expect(display).toBe(true);
  expect(visibleText(summary)).toMatch(/£78\.91.*9\.9% APR representative.*Learn more$/);
});

test('takes amounts as JSON numbers and answers with strings', async () => {
  const answer = await api.quote({ merchant_id: 'M100001', loan_amount: 900.5, customer_deposit: 99.5 });
  expect(answer.body.data.products[0]).toMatchObject({ loan_amount: '900.50', customer_deposit: '99.50' });
});

test('takes minus zero as a number for no deposit, as a schema with a minimum of 0 does', async () => {
  const body = JSON.stringify({ ...goodQuote, merchant_id: 'M100001', customer_deposit: 0 });
  for (const zero of ['0', '-0', '-0.0', '-0e0']) {
    const sent = body.replace('"customer_deposit":0', `"customer_deposit":${zero}`);
    const { data } = (await api.call({ body: sent })).body;
    expect(data.products[0]).toMatchObject({ customer_deposit: '0.00' });
  }
});

test('a reference of nothing but spaces is none', async () => {
  const answer = await api.quote({ merchant_id: 'M100001', merchant_reference: '   ' });
  expect(answer.body.data.merchant_reference).toBeNull();
  expect(linkOf(answer)).not.toContain('merchant_reference');
});

test('deposits are raised to the floor, and summary and products follow', async () => {
  const amounts = { loan_amount: '999.99', customer_deposit: undefined };
  const answer = await api.quote({ merchant_id: 'M100002', ...amounts });
  const { data } = answer.body;
  // A tenth of 999.99 is 99.999: a percentage minimum rounds up.
  const raised = { customer_deposit: '100.00', loan_amount: '899.99' };
  expect(data.deposit_adjustment).toMatchObject({
    requested_deposit: '0.00',
    corrected_deposit: '100.00',
    affected_products: [{ lender: 'Example Bank', credit_product: 'Product 0', ...raised }],
  });
  expect(data.products[0]).toMatchObject({ purchase_price: '999.99', ...raised });
  expect(linkOf(answer)).toContain('loan_amount=899.99&customer_deposit=100.00');
});

describe('merchants of every kind', () => {
  test.each([
    ['M100003', 'with products'],
    ['M100011', 'without any'],
  ])('not authorised: %s, %s, has a plain summary, no products, the notice', async (merchant_id) => {
    const answer = await api.quote({ merchant_id });
    const products_notice = { code: 'MERCHANT_FCA_NOT_AUTHORISED' };
    expect(answer.body.data).toMatchObject({ summary: { display: true }, products: [], products_notice });
    expect(answer.body.data).not.toHaveProperty('deposit_adjustment');
    expect(visibleText(answer.body.data.summary.finance_offer_summary)).toMatch(/^[^\d%£]+Learn more$/);
    expect(linkOf(answer)).toContain('?loan_amount=900.00&customer_deposit=100.00&service_quote_id=');
  });

  test('nothing fits: success without offers, the adjustment stays', async () => {
    const amounts = { loan_amount: '50.00', customer_deposit: '0.00' };
    const { status, body } = await api.quote({ merchant_id: 'M100002', ...amounts });
    expect([status, body.success]).toEqual([200, true]);
    expect(body.data).toMatchObject({
      summary: { display: false, finance_offer_summary: '' },
      products: [],
      deposit_adjustment: { corrected_deposit: '5.00', affected_products: [] },
    });
  });

  test('summary only: no list, no notice, still displayed', async () => {
    const { data } = (await api.quote({ merchant_id: 'M100004', customer_deposit: '10.00' })).body;
    expect(data).toMatchObject({
      products: [],
      summary: { display: true },
      deposit_adjustment: { corrected_deposit: '50.00', affected_products: [] },
    });
    expect(data).not.toHaveProperty('products_notice');
  });

  test('the alternative id form; restricted: exists for its partners only', async () => {
    for (const merchant_id of ['AB-1C2D-3E4F-5G6H', 'M1000071'])
      expect(await api.quote({ merchant_id })).toMatchObject({ status: 200 });
    expect(await api.quote({ merchant_id: 'M1000070' })).toMatchObject(refusal(404, 'MERCHANT_NOT_FOUND'));
  });

  test.each([
    ['M100008', ['trading_name', 'products']],
    // It is not authorised, and so needs no products.
    ['M100012', ['trading_name']],
    ['M000005', expect.arrayContaining([expect.any(String)])],
  ])(
    '%s is incomplete: what is missing is said, before the loan is judged: %j',
    async (merchant_id, fields) => {
      const details = { merchant_id, missing_fields: fields };
      const missing = refusal(500, 'MERCHANT_CONFIGURATION_INCOMPLETE', details);
      expect(await api.quote({ merchant_id, loan_amount: '1.00' })).toMatchObject(missing);
    },
  );

  test('a corrupt product row stops its merchant alone', async () => {
    const { sql } = api.database;
    await addMerchant(api.database, 'M100010');
    await sql`update product_versions set number_of_repayments = 0
              where product_id in (select product_id from products where merchant_id = 'M100010')`;
    const missing_fields = ['products[Product 0].number_of_repayments'];
    const corrupt = refusal(500, 'MERCHANT_CONFIGURATION_INCOMPLETE', { missing_fields });
    expect(await api.quote({ merchant_id: 'M100010' })).toMatchObject(corrupt);
    expect(await api.quote({ merchant_id: 'M100001' })).toMatchObject({ status: 200 });
  });

  test.each([
    ['M000001', { summary: { display: true } }],
    ['M000002', { products: [], products_notice: { code: 'MERCHANT_FCA_NOT_AUTHORISED' } }],
    ['M000003', { summary: { display: false, finance_offer_summary: '' }, products: [] }],
    ['M000004', { deposit_adjustment: { corrected_deposit: '500.00' } }],
  ])('designated test merchant %s, with a test key and a live one', async (merchant_id, data) => {
    for (const key of [api.keys.test, api.keys.live]) {
      expect(await api.quote({ merchant_id }, { key })).toMatchObject({ status: 200, body: { data } });
    }
  });
});

test('stores what it answered, and every product that fitted, before answering', async () => {
  const answer = await api.quote(
    { merchant_id: 'M100004', merchant_reference: 'kept', padding: 'ignored and not stored' },
    { headers: { 'x-request-id': 'trace-me' }, key: api.keys.live },
  );
  const id = answer.body.data.service_quote_id;
  const [row] = await api.database
    .sql`select *, tableoid::regclass::text as part from quotes where quote_id = ${id}`;
  expect(row).toMatchObject({
    partner_id: 'P100001',
    environment: 'live',
    merchant_id: 'M100004',
    loan_pence: '90000',
    deposit_pence: '10000',
    used_deposit_pence: '10000',
    merchant_reference: 'kept',
    request_id: 'trace-me',
    response: answer.text,
  });
  const product = { creditProduct: 'Product 0', version: 1, loanPence: 90_000, depositPence: 10_000 };
  expect(decodeFitted(JSON.parse(String(row?.['fitted'])))).toMatchObject([product]);
  expect(JSON.stringify(row)).not.toContain('ignored');
  const month = new Date().toISOString().slice(0, 7).replace('-', '_');
  expect(row?.['part']).toBe(`quotes_${month}`);
});

async function expectError(fields: Record<string, unknown>, status: number, code: string, details?: object) {
  const answer = await api.quote(fields);
  expect(answer).toMatchObject(refusal(status, code));
  expect(typeof answer.body.error.message).toBe('string');
  if (details) expect(answer.body.error.details).toEqual(details);
}

describe('every row of the error table (spec 7.4)', () => {
  test.each<[string, unknown[]]>([
    ['merchant_id', ['M12345', 'M12345678', 'm123456', 'M123456\n', 'M１２３４５６']],
    ['merchant_id', ['AB-1C2D-3E4F', 123456, '']],
    // The last one is another partner's.
    ['partner_id', ['P12345', 'P1234567', 'X123456', 7, 'P999999']],
    ['loan_amount', ['0', 0, '1,000.00', '£100', -5, '', true, {}]],
    ['customer_deposit', ['-0.01', -1, '1,0', '-0', '1000000000000.00', '99999999999999999999.00', 1e21]],
    ['merchant_finance_url', ['http://shop.example/finance', 'https://shop.example/a b', 42]],
    ['merchant_reference', ['a'.repeat(65), 'naïve', 'a/b', 'a\tb', '<b>', 'a@b', 7]],
  ])('refuses %s: %j', async (field, values) => {
    for (const value of values) await expectError({ [field]: value }, 400, 'INVALID_REQUEST', { field });
  });

  test.each(['merchant_id', 'partner_id', 'loan_amount', 'merchant_finance_url'])(
    'names a missing %s, absent or null',
    async (field) => {
      for (const value of [undefined, null])
        await expectError({ [field]: value }, 400, 'MISSING_FIELD', { field, fields: [field] });
    },
  );

  test('lists all missing fields before any format', async () => {
    const fields = ['merchant_id', 'loan_amount', 'merchant_finance_url'];
    const answer = await api.call({ body: { partner_id: 'nonsense' } });
    expect(answer).toMatchObject(refusal(400, 'MISSING_FIELD', { field: 'merchant_id', fields }));
  });

  test.each([
    ['INVALID_REQUEST', 'merchant_id', { loan_amount: '-1', merchant_id: 'x' }],
    ['INVALID_AMOUNT_FORMAT', 'loan_amount', { loan_amount: '1.999', customer_deposit: '-1' }],
    ['INVALID_REQUEST', 'merchant_reference', { partner_id: 'P999999', merchant_reference: '<>' }],
  ])('checks formats in the order of the fields: %s, %s', async (code, field, fields) => {
    await expectError(fields, 400, code, { field });
  });

  test('says what an amount of another type must be', async () => {
    const { body } = await api.quote({ loan_amount: {} });
    expect(body.error.message).toBe('loan_amount must be a string such as "1000.00".');
  });
  test.each(['loan_amount', 'customer_deposit'])('refuses %s with more than two decimals', async (field) => {
    for (const value of ['100.001', '100.000', 100.001, '1.0000000', 1e-7])
      await expectError({ [field]: value }, 400, 'INVALID_AMOUNT_FORMAT', { field });
  });

  test('answers 404 for an unknown merchant, before it judges the loan', async () => {
    for (const merchant_id of ['M999999', 'ZZ-0000-0000-0000'])
      await expectError({ merchant_id, loan_amount: '1.00' }, 404, 'MERCHANT_NOT_FOUND');
  });

  test('judges the limits on the requested loan', async () => {
    const tooLow = { provided_loan_amount: 9.99, minimum_required: 10 };
    await expectError({ loan_amount: '9.99' }, 422, 'AMOUNT_TOO_LOW', tooLow);
    const tooHigh = { provided_loan_amount: 2_000_000.01, maximum_allowed: 2_000_000 };
    await expectError({ loan_amount: '2000000.01' }, 422, 'AMOUNT_TOO_HIGH', tooHigh);
    for (const loan_amount of ['10', '10.0', 10, '2000000.00'])
      expect(await api.quote({ loan_amount, customer_deposit: undefined })).toMatchObject({ status: 200 });
  });
});
