import { goodQuote, useApi } from '../support/api';
import { refusal } from '../support/http-call';

const api = useApi();

async function expectError(fields: Record<string, unknown>, status: number, code: string, details?: object) {
  const answer = await api.quote(fields);
  expect(answer).toMatchObject(refusal(status, code));
  expect(typeof answer.body.error.message).toBe('string');
  if (details) expect(answer.body.error.details).toEqual(details);
  return answer;
}

describe('every row of the error table (spec 7.4)', () => {
  const merchants = [
    'M12345',
    'M12345678',
    'm123456',
    'M123456\n',
    'M１２３４５６',
    'AB-1C2D-3E4F',
    123456,
    '',
  ];
  test.each<[string, unknown[]]>([
    ['merchant_id', merchants],
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

  test.each(['loan_amount', 'customer_deposit'])('refuses %s with more than two decimals', async (field) => {
    for (const value of ['100.001', '100.000', 100.001, '1.0000000', 1e-7])
      await expectError({ [field]: value }, 400, 'INVALID_AMOUNT_FORMAT', { field });
  });

  test('refuses a field that is named twice, also when one name is escaped', async () => {
    const text = JSON.stringify(goodQuote);
    for (const twice of ['"loan_amount":"5.00"', '"loan\\u005famount":"5.00"']) {
      const answer = await api.call({ body: `${text.slice(0, -1)},${twice}}` });
      expect(answer).toMatchObject(refusal(400, 'INVALID_REQUEST', { field: 'loan_amount' }));
    }
  });

  test('answers 404 for an unknown merchant, before it judges the loan', async () => {
    for (const merchant_id of ['M999999', 'ZZ-0000-0000-0000'])
      await expectError({ merchant_id, loan_amount: '1.00' }, 404, 'MERCHANT_NOT_FOUND');
  });

  test('names what an incomplete merchant lacks, before the limits are judged', async () => {
    const fields = { merchant_id: 'M000005', loan_amount: '1.00' };
    const answer = await expectError(fields, 500, 'MERCHANT_CONFIGURATION_INCOMPLETE');
    expect(answer.body.error.details.merchant_id).toBe('M000005');
    expect(answer.body.error.details.missing_fields.length).toBeGreaterThan(0);
  });

  test('judges the limits on the requested loan', async () => {
    const tooLow = { provided_loan_amount: 9.99, minimum_required: 10 };
    await expectError({ loan_amount: '9.99' }, 422, 'AMOUNT_TOO_LOW', tooLow);
    const tooHigh = { provided_loan_amount: 2_000_000.01, maximum_allowed: 2_000_000 };
    await expectError({ loan_amount: '2000000.01' }, 422, 'AMOUNT_TOO_HIGH', tooHigh);
    for (const loan_amount of ['9999999999999.99', '9'.repeat(400), 1e21, 1e300])
      await expectError({ loan_amount }, 422, 'AMOUNT_TOO_HIGH');
    for (const loan_amount of ['10', '10.0', 10, '2000000.00'])
      expect(await api.quote({ loan_amount, customer_deposit: undefined })).toMatchObject({ status: 200 });
  });
});

test('the key is checked before the body', async () => {
  expect(await api.call({ key: null, body: 'not json' })).toMatchObject({ status: 401 });
});
