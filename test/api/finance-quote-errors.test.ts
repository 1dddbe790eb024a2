import { goodQuote, startTestApi, type TestApi } from '../support/api';
import { refusal } from '../support/http-call';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

async function expectError(fields: Record<string, unknown>, status: number, code: string, details?: object) {
  const answer = await api.quote(fields);
  expect(answer).toMatchObject(refusal(status, code));
  expect(typeof answer.body.error.message).toBe('string');
  if (details) expect(answer.body.error.details).toEqual(details);
  return answer;
}

describe('every row of the error table (spec 7.4)', () => {
  test.each([
    ['too few digits', 'M12345'],
    ['too many digits', 'M12345678'],
    ['lower case', 'm123456'],
    ['a trailing line break', 'M123456\n'],
    ['full-width digits', 'M１２３４５６'],
    ['an alternative form with two groups', 'AB-1C2D-3E4F'],
    ['a number', 123456],
    ['an empty text', ''],
  ])('refuses a merchant_id with %s', async (_what, merchant_id) => {
    await expectError({ merchant_id }, 400, 'INVALID_REQUEST', { field: 'merchant_id' });
  });

  test.each(['P12345', 'P1234567', 'X123456', 7])('refuses partner_id %p', async (partner_id) => {
    await expectError({ partner_id }, 400, 'INVALID_REQUEST', { field: 'partner_id' });
  });

  test('refuses a partner_id that does not match the key', async () => {
    await expectError({ partner_id: 'P999999' }, 400, 'INVALID_REQUEST', { field: 'partner_id' });
  });

  test.each(['merchant_id', 'partner_id', 'loan_amount', 'merchant_finance_url'])(
    'names a missing %s, absent or null',
    async (field) => {
      await expectError({ [field]: undefined }, 400, 'MISSING_FIELD', { field, fields: [field] });
      await expectError({ [field]: null }, 400, 'MISSING_FIELD', { field, fields: [field] });
    },
  );

  test('lists all missing fields before any format', async () => {
    const answer = await api.call({ body: { partner_id: 'nonsense' } });
    expect(answer.body.error).toMatchObject({
      code: 'MISSING_FIELD',
      details: { field: 'merchant_id', fields: ['merchant_id', 'loan_amount', 'merchant_finance_url'] },
    });
  });

  test('checks formats in the order of the fields', async () => {
    await expectError({ loan_amount: '-1', merchant_id: 'x' }, 400, 'INVALID_REQUEST', {
      field: 'merchant_id',
    });
    await expectError({ loan_amount: '1.999', customer_deposit: '-1' }, 400, 'INVALID_AMOUNT_FORMAT', {
      field: 'loan_amount',
    });
    await expectError({ partner_id: 'P999999', merchant_reference: '<>' }, 400, 'INVALID_REQUEST', {
      field: 'merchant_reference',
    });
  });

  test.each(['loan_amount', 'customer_deposit'])('refuses %s with more than two decimals', async (field) => {
    for (const value of ['100.001', '100.000', 100.001, '1.0000000', 1e-7]) {
      await expectError({ [field]: value }, 400, 'INVALID_AMOUNT_FORMAT', { field });
    }
  });

  test.each(['0', 0, '1,000.00', '£100', -5, '', true, {}])('refuses loan_amount %p', async (loan_amount) => {
    await expectError({ loan_amount }, 400, 'INVALID_REQUEST', { field: 'loan_amount' });
  });

  test.each(['-0.01', -1, '1,0', '-0', '1000000000000.00', '99999999999999999999.00', 1e21])(
    'refuses customer_deposit %p',
    async (customer_deposit) => {
      await expectError({ customer_deposit }, 400, 'INVALID_REQUEST', { field: 'customer_deposit' });
    },
  );

  test.each([
    'not a url',
    'http://shop.example/finance',
    'https://user:secret@shop.example/',
    'https://a..b/',
    'https://shop.example/a b',
    42,
  ])('refuses merchant_finance_url %p', async (merchant_finance_url) => {
    await expectError({ merchant_finance_url }, 400, 'INVALID_REQUEST', { field: 'merchant_finance_url' });
  });

  test.each(['a'.repeat(65), 'naïve', 'a/b', 'a\tb', '<b>', 'a@b', 7])(
    'refuses merchant_reference %p',
    async (merchant_reference) => {
      await expectError({ merchant_reference }, 400, 'INVALID_REQUEST', { field: 'merchant_reference' });
    },
  );

  test('refuses a field that is named twice, also when one name is escaped', async () => {
    const text = JSON.stringify(goodQuote);
    for (const twice of ['"loan_amount":"5.00"', '"loan\\u005famount":"5.00"']) {
      const answer = await api.call({ body: `${text.slice(0, -1)},${twice}}` });
      expect(answer).toMatchObject({ status: 400, body: { error: { details: { field: 'loan_amount' } } } });
    }
  });

  test('answers 404 for an unknown merchant', async () => {
    await expectError({ merchant_id: 'M999999' }, 404, 'MERCHANT_NOT_FOUND');
    await expectError({ merchant_id: 'ZZ-0000-0000-0000' }, 404, 'MERCHANT_NOT_FOUND');
  });

  test('names what an incomplete merchant lacks, before the limits are judged', async () => {
    const answer = await expectError(
      { merchant_id: 'M000005', loan_amount: '1.00' },
      500,
      'MERCHANT_CONFIGURATION_INCOMPLETE',
    );
    expect(answer.body.error.details.merchant_id).toBe('M000005');
    expect(answer.body.error.details.missing_fields.length).toBeGreaterThan(0);
  });

  test('judges the limits on the requested loan', async () => {
    await expectError({ loan_amount: '9.99' }, 422, 'AMOUNT_TOO_LOW', {
      provided_loan_amount: 9.99,
      minimum_required: 10,
    });
    await expectError({ loan_amount: '2000000.01' }, 422, 'AMOUNT_TOO_HIGH', {
      provided_loan_amount: 2_000_000.01,
      maximum_allowed: 2_000_000,
    });
    for (const loan_amount of ['9999999999999.99', '9'.repeat(400), 1e21, 1e300]) {
      await expectError({ loan_amount }, 422, 'AMOUNT_TOO_HIGH');
    }
    for (const loan_amount of ['10', '10.0', 10, '2000000.00']) {
      expect(await api.quote({ loan_amount, customer_deposit: undefined })).toMatchObject({ status: 200 });
    }
  });

  test('an unknown merchant comes before a loan that is too low', async () => {
    await expectError({ merchant_id: 'M999999', loan_amount: '1.00' }, 404, 'MERCHANT_NOT_FOUND');
  });
});

test('the key is checked before the body', async () => {
  expect(await api.call({ key: null, body: 'not json' })).toMatchObject({ status: 401 });
});
