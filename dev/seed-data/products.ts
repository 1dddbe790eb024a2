import type { ProductFileRow } from '../../ops/import/row-schemas';

export type SeedProduct = Omit<ProductFileRow, 'merchant_id'>;

/** What the demo's lenders are called: what its quotes show. */
export const LENDER_NAMES = {
  lender_a: 'Harbour Retail Finance',
  lender_b: 'Beacon Consumer Credit',
} as const;

/** Loans of the usual high-street range. */
const USUAL = { minimum_loan_amount: '250.00', maximum_loan_amount: '25000.00' } as const;

/** An interest-bearing product of a given length, its figures rounded to the nearest penny. */
const classic = (months: number, apr: string): SeedProduct => ({
  ...USUAL,
  credit_product: `Classic credit ${months} months`,
  lender: 'lender_a',
  number_of_repayments: months,
  apr,
});

const interestFree = (months: number): SeedProduct => ({
  ...classic(months, '0'),
  credit_product: `Interest free ${months} months`,
});

/** 9.9 % APR over twelve months, with the published example of a large UK lender. */
export const CLASSIC_12: SeedProduct = {
  ...classic(12, '9.9'),
  representative_example: {
    loan_amount: '1200.00',
    monthly_repayment: '105.21',
    total_amount_payable: '1262.52',
    cost_of_credit: '62.52',
  },
};
export const CLASSIC_24 = classic(24, '12.9');
/** 13.9 % APR over three years, with a photographic retailer's published example. */
export const CLASSIC_36: SeedProduct = {
  ...classic(36, '13.9'),
  representative_example: {
    loan_amount: '359.00',
    monthly_repayment: '12.11',
    total_amount_payable: '435.96',
  },
};
/** Instalments rounded up, as the lender publishes: £26.58 a month for £900. */
export const CLASSIC_48_CEIL: SeedProduct = {
  ...classic(48, '19.9'),
  lender: 'lender_b',
  instalment_rounding: 'ceil',
  representative_example: { loan_amount: '900.00', monthly_repayment: '26.58' },
};
/** Instalments rounded down: £301.35 a month for £10,000. */
export const PERSONAL_36_FLOOR: SeedProduct = {
  ...classic(36, '5.5'),
  credit_product: 'Large purchase 36 months',
  minimum_loan_amount: '5000.00',
  maximum_loan_amount: '50000.00',
  instalment_rounding: 'floor',
  representative_example: { loan_amount: '10000.00', monthly_repayment: '301.35' },
};

export const INTEREST_FREE_6 = interestFree(6);
export const INTEREST_FREE_10 = interestFree(10);
/** £999 over a year leaves nothing over: £83.25 a month. */
export const INTEREST_FREE_12: SeedProduct = {
  ...interestFree(12),
  representative_example: {
    loan_amount: '999.00',
    monthly_repayment: '83.25',
    total_amount_payable: '999.00',
  },
};

/** A year without payments, then three years; settled within the year it costs the fee only. */
export const BUY_NOW_PAY_LATER: SeedProduct = {
  ...USUAL,
  credit_product: 'Buy now pay later 12 + 36 months',
  lender: 'lender_b',
  number_of_repayments: 36,
  apr: '13.9',
  deferral_months: 12,
  settlement_fee: '29.00',
  instalment_rounding: 'floor',
  first_payment_type: 'none',
  representative_example: { loan_amount: '1800.00', monthly_repayment: '68.41' },
};

/** The rate may move during the agreement. */
export const VARIABLE_24: SeedProduct = {
  ...classic(24, '14.9'),
  credit_product: 'Variable credit 24 months',
  rate_type: 'variable',
  annual_rate_shown: 'effective',
};

/** 0.79 % a month, which is 9.9 % APR. */
export const MONTHLY_RATE_24: SeedProduct = {
  ...classic(24, '9.9'),
  credit_product: 'Monthly rate credit 24 months',
  rate_basis: 'monthly_rate',
  rate: '0.79',
};

/** 9.48 % a year in twelfths, which is 9.9 % APR; the last payment clears the balance. */
export const NOMINAL_RATE_36: SeedProduct = {
  ...classic(36, '9.9'),
  credit_product: 'Nominal rate credit 36 months',
  rate_basis: 'nominal_annual',
  rate: '9.48',
  final_payment: 'clear_balance',
  annual_rate_shown: 'nominal',
};

/** Takes the deposit as its first payment, and no more than half the price as deposit. */
export const WITH_DEPOSIT_24: SeedProduct = {
  ...classic(24, '9.9'),
  credit_product: 'Deposit credit 24 months',
  minimum_deposit: { percent: '10' },
  maximum_deposit: { percent: '50' },
  first_payment_type: 'deposit',
};

/** A third of the price today, as the deposit, and the rest in two payments (docs/import-format.md). */
export const PAY_IN_THREE: SeedProduct = {
  ...interestFree(2),
  credit_product: 'Pay in three',
  minimum_deposit: { percent: '33.33' },
  maximum_deposit: { percent: '33.33' },
  first_payment_type: 'deposit',
};

/** One repayment, where the agreement counts days. */
export const PAY_AFTER_30_DAYS: SeedProduct = {
  ...interestFree(1),
  credit_product: 'Pay after 30 days',
  first_interval_days: 30,
};

/** One repayment, where it counts months, at a rate that may move. */
export const PAY_AFTER_3_MONTHS: SeedProduct = {
  ...classic(1, '19.9'),
  credit_product: 'Pay after 3 months',
  deferral_months: 3,
  rate_type: 'variable',
};
