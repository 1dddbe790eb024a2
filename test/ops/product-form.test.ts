import { checkProducts } from '../../ops/import/products';
import { PRODUCT_ROW } from './product-row';

/** Fields at fault in a products file of one row. */
const faultsOf = (changes: object) =>
  checkProducts([{ ...PRODUCT_ROW, ...changes }]).faults.map(({ field }) => field);

const monthly = { rate_basis: 'monthly_rate' };

test('accepts the row that the others change', () => {
  expect(faultsOf({})).toEqual([]);
});

test.each<[string, object, string]>([
  ['a missing lender', { lender: ' ' }, 'lender'],
  ['a name with a line break', { credit_product: 'a\nb' }, 'credit_product'],
  ['a name that is too long', { credit_product: 'x'.repeat(121) }, 'credit_product'],
  ['no repayments', { number_of_repayments: 0 }, 'number_of_repayments'],
  ['more than 120 repayments', { number_of_repayments: 121 }, 'number_of_repayments'],
  ['part of a repayment', { number_of_repayments: 1.5 }, 'number_of_repayments'],
  ['a negative APR', { apr: '-0.1' }, 'apr'],
  ['an APR with two decimals', { apr: '9.95' }, 'apr'],
  ['an APR that is no number', { apr: 'NaN' }, 'apr'],
  ['an APR above 10,000 %', { apr: '10000.1' }, 'apr'],
  ['an unknown rate basis', { rate_basis: 'daily' }, 'rate_basis'],
  ['an unknown rounding', { instalment_rounding: 'up' }, 'instalment_rounding'],
  ['a negative rate', { ...monthly, rate: '-0.1' }, 'rate'],
  ['a rate above 10,000 %', { ...monthly, rate: '10000.1' }, 'rate'],
  ['a loan below 10.00', { minimum_loan_amount: '9.99' }, 'minimum_loan_amount'],
  ['a loan above 2,000,000.00', { maximum_loan_amount: '2000000.01' }, 'maximum_loan_amount'],
  ['a deposit above the price', { minimum_deposit: { percent: '100.01' } }, 'minimum_deposit.percent'],
  ['a deposit above 1,000,000.00', { minimum_deposit: { amount: '1000000.01' } }, 'minimum_deposit.amount'],
  ['a negative deposit', { maximum_deposit: { amount: '-0.01' } }, 'maximum_deposit.amount'],
  ['a fee above 1,000,000.00', { deferral_months: 6, settlement_fee: '1000000.01' }, 'settlement_fee'],
  ['a deferral beyond five years', { deferral_months: 61 }, 'deferral_months'],
  ['a first interval beyond five years', { first_interval_days: 1_831 }, 'first_interval_days'],
])('refuses %s', (_name, changes, field) => {
  expect(new Set(faultsOf(changes))).toEqual(new Set([field]));
});
