import type { ProductTerms } from '../../domain/product';
import { checkProduct, aprTolerance, type PublishedExample } from '../../domain/product-check';
import { planRepayments } from '../../domain/repayment-plan';
import { buildProduct, INTEREST_FREE } from './builders';

function faultsOf(changes: Partial<ProductTerms>, example?: PublishedExample): string[] {
  return checkProduct(buildProduct(changes), example).map(({ field }) => field);
}

const rule = (basisPoints: number, fixedPence: number) => ({ basisPoints, fixedPence });
const RULE = rule(1_000, 0);

describe('refuses', () => {
  it.each<[string, Partial<ProductTerms>, string]>([
    ['a rate beside an effective APR', { ratePpm: 7_900 }, 'ratePpm'],
    ['a monthly basis without a rate', { rateBasis: 'monthly_rate' }, 'ratePpm'],
    ['a loan range turned round', { minLoanPence: 2_000, maxLoanPence: 1_999 }, 'minLoanPence'],
    ['a minimum share above the maximum', { depositMin: RULE, depositMax: rule(500, 0) }, 'depositMin'],
    ['a fixed minimum above it', { depositMin: rule(0, 2), depositMax: rule(5_000, 1) }, 'depositMin'],
    ['days that are not those deferred', { deferralMonths: 12, firstIntervalDays: 31 }, 'firstIntervalDays'],
    ['days that are a deferral', { firstIntervalDays: 90 }, 'firstIntervalDays'],
    ['a settlement fee without a deferral', { settlementFeePence: 2_900 }, 'settlementFeePence'],
    ['a remainder above 0 %', { finalPayment: 'remainder' }, 'finalPayment'],
    ['equal payments at 0 %', { aprBasisPoints: 0 }, 'finalPayment'],
    ['a rate that is not the APR', { rateBasis: 'monthly_rate', ratePpm: 8_000 }, 'aprBasisPoints'],
    ['the APR as the nominal rate', { rateBasis: 'nominal_annual', ratePpm: 99_000 }, 'aprBasisPoints'],
    ['a 0 % that costs', { ...INTEREST_FREE, rateBasis: 'monthly_rate', ratePpm: 500 }, 'aprBasisPoints'],
    ['an interest product that costs nothing', { rateBasis: 'monthly_rate', ratePpm: 0 }, 'aprBasisPoints'],
    [
      'a total beyond exact computing',
      { aprBasisPoints: 1_000_000, numberOfRepayments: 120, deferralMonths: 60 },
      'aprBasisPoints',
    ],
  ])('%s', (_name, changes, field) => {
    expect(faultsOf(changes)).toContain(field);
  });

  it('a tiny APR over small loans, whose rounded payments cost nothing or less', () => {
    const tiny: Partial<ProductTerms> = { aprBasisPoints: 10, minLoanPence: 1_000, maxLoanPence: 100_000 };
    const messages = checkProduct(buildProduct(tiny)).map(({ message }) => message);
    expect(messages).toContain('a loan of 10.00 at 0.1% APR costs nothing');
    expect(faultsOf({ ...tiny, minLoanPence: 25_000 })).toEqual([]);
  });

  it('a loan range in which a single loan between the samples would cost nothing', () => {
    const range = { aprBasisPoints: 50, minLoanPence: 1_000, maxLoanPence: 200_000_000 };
    const free: number[] = [];
    for (let loanPence = 1_000; loanPence < 25_000; loanPence += 1) {
      if (planRepayments(buildProduct(range), loanPence).costOfCreditPence <= 0) free.push(loanPence);
    }
    const last = free.at(-1) ?? 0;
    expect(faultsOf({ ...range, minLoanPence: last })).toEqual(['aprBasisPoints']);
    expect(faultsOf({ ...range, minLoanPence: last - 1 })).toEqual(['aprBasisPoints']);
    expect(faultsOf({ ...range, minLoanPence: last + 1 })).toEqual([]);
  });

  it('the rate of a product only as far as rounding explains it', () => {
    const ten = buildProduct({ aprBasisPoints: 1_000 });
    expect(aprTolerance(ten, 120_000)).toBeCloseTo(0.05 + (12 * 1.21) / 1_200, 12);
    const free = buildProduct({ instalmentRounding: 'ceil', ...INTEREST_FREE });
    expect(aprTolerance(free, 2_400)).toBeCloseTo(1.05, 12);
  });
});

describe('a published example', () => {
  const figures = {
    loanPence: 120_000,
    monthlyRepaymentPence: 10_521,
    finalRepaymentPence: 10_521,
    totalPayablePence: 126_252,
    costOfCreditPence: 6_252,
  };

  it('is accepted when the product reproduces it, whole or in part', () => {
    expect(faultsOf({}, figures)).toEqual([]);
    expect(faultsOf({}, { loanPence: 120_000, monthlyRepaymentPence: 10_521 })).toEqual([]);
  });

  it.each<[string, Partial<PublishedExample>]>([
    ['payments do not add up to its total', { totalPayablePence: 126_253 }],
    ['total less loan is not its cost', { costOfCreditPence: 6_251 }],
    ['figures imply another APR', { monthlyRepaymentPence: 10_621, finalRepaymentPence: 10_621 }],
    ['instalment is a penny off', { monthlyRepaymentPence: 10_522, finalRepaymentPence: undefined }],
    ['last payment is not the product’s', { finalRepaymentPence: 10_520 }],
    ['loan is outside the loan range', { loanPence: 999 }],
    ['amounts are no whole pence', { totalPayablePence: 126_252.5 }],
    ['payment is nothing', { monthlyRepaymentPence: 0 }],
  ])('is refused when its %s', (_name, changes) => {
    const some = { ...figures, totalPayablePence: undefined, costOfCreditPence: undefined };
    expect(faultsOf({}, { ...some, ...changes })).toContain('publishedExample');
  });

  it('of a 0 % product is refused when it costs something', () => {
    const costly = { loanPence: 120_000, monthlyRepaymentPence: 10_000, finalRepaymentPence: 10_001 };
    expect(faultsOf(INTEREST_FREE, costly)).toContain('publishedExample');
  });
});
