import { type MerchantSetup, HIGHEST_LOAN_PENCE, LOWEST_LOAN_PENCE, type Product } from './product';

interface TestMerchant {
  readonly merchant: MerchantSetup;
  /** The situation it shows, for the partner guide. */
  readonly shows: string;
}

const INTEREST_BEARING: Product = {
  productId: 'test-interest-bearing-12',
  version: 1,
  displayOrder: 1,
  validFrom: null,
  validTo: null,
  lender: 'test_lender_a',
  lenderName: 'Test Lender A',
  creditProduct: '12 months at 9.9% APR',
  numberOfRepayments: 12,
  aprBasisPoints: 990,
  rateType: 'fixed',
  rateBasis: 'apr_effective',
  ratePpm: null,
  instalmentRounding: 'half_up',
  finalPayment: 'equal',
  deferralMonths: 0,
  firstIntervalDays: null,
  settlementFeePence: 0,
  minLoanPence: LOWEST_LOAN_PENCE,
  maxLoanPence: HIGHEST_LOAN_PENCE,
  depositMin: null,
  depositMax: null,
  firstPaymentType: 'monthly_repayment',
  annualRateShown: 'flat',
};

const INTEREST_FREE: Product = {
  ...INTEREST_BEARING,
  productId: 'test-interest-free-10',
  displayOrder: 2,
  lender: 'test_lender_b',
  lenderName: 'Test Lender B',
  creditProduct: '10 months interest-free',
  numberOfRepayments: 10,
  aprBasisPoints: 0,
  finalPayment: 'remainder',
};

const BUY_NOW_PAY_LATER: Product = {
  ...INTEREST_BEARING,
  productId: 'test-buy-now-pay-later-12-36',
  displayOrder: 3,
  creditProduct: 'Buy now pay later 12 months, then 36 months at 19.9% APR',
  numberOfRepayments: 36,
  aprBasisPoints: 1_990,
  deferralMonths: 12,
  settlementFeePence: 2_900,
};

const STANDARD: MerchantSetup = {
  merchantId: 'M000001',
  tradingName: 'Test Merchant Standard',
  fcaAuthorised: true,
  showProducts: true,
  summaryStyle: null,
  depositFloor: null,
  products: [INTEREST_BEARING, INTEREST_FREE, BUY_NOW_PAY_LATER],
  corruptFields: [],
};

const TEST_MERCHANT_LIST: readonly TestMerchant[] = [
  {
    merchant: STANDARD,
    shows: 'standard: an interest-bearing, an interest-free and a buy now pay later product, for every loan',
  },
  {
    merchant: {
      ...STANDARD,
      merchantId: 'M000002',
      tradingName: 'Test Merchant Not Authorised',
      fcaAuthorised: false,
    },
    shows: 'not authorised: the plain headline, no products, and the notice MERCHANT_FCA_NOT_AUTHORISED',
  },
  {
    merchant: {
      ...STANDARD,
      merchantId: 'M000003',
      tradingName: 'Test Merchant Nothing Fits',
      // Its only product was last offered long ago, so that nothing ever fits.
      products: [{ ...INTEREST_BEARING, validTo: '2000-01-01' }],
    },
    shows:
      'nothing fits: display is false, the summary is empty and there are no products, whatever the amount',
  },
  {
    merchant: {
      ...STANDARD,
      merchantId: 'M000004',
      tradingName: 'Test Merchant Deposit Raised',
      depositFloor: { basisPoints: 5_000, fixedPence: 0 },
    },
    shows:
      'deposit raised: a deposit below 50% of the purchase price is raised to it, with a deposit_adjustment; nothing fits below a price of 20.00',
  },
  {
    merchant: {
      ...STANDARD,
      merchantId: 'M000005',
      tradingName: 'Test Merchant Incomplete',
      fcaAuthorised: null,
      products: [],
    },
    shows: 'set-up incomplete: 500 MERCHANT_CONFIGURATION_INCOMPLETE, fca_authorised and products missing',
  },
];

/**
 * The lenders of their products, made by the migration. They have no service keys and no other products,
 * so that only the simulator of the sandbox opens applications for them.
 */
export const TEST_LENDERS: ReadonlySet<string> = new Set(['test_lender_a', 'test_lender_b']);

export const TEST_MERCHANTS: ReadonlyMap<string, TestMerchant> = new Map(
  TEST_MERCHANT_LIST.map((entry) => [entry.merchant.merchantId, entry]),
);
