import rows from '../vectors/finance-cases.json';
import { impliedApr, roundPercent } from '../../domain/apr';
import { parsePence, formatPence, roundPence } from '../../domain/money';
import type { Product } from '../../domain/product';
import { checkProduct, impliedProductApr } from '../../domain/product-check';
import {
  effectiveAnnualBasisPoints,
  flatAnnualBasisPoints,
  nominalAnnualBasisPoints,
  planRepayments,
  preparePlan,
} from '../../domain/repayment-plan';
import { buildProduct } from './builders';

/** A row of finance-cases.json: published figures, with the profile that reproduces them where there is one. */
// oxlint-disable-next-line typescript/no-explicit-any -- a row has the fields that its kind needs
type Row = any;

/** Intervals between two dates are no concern of the service, which counts months and days. */
const ROWS = (rows as readonly Row[]).filter(({ kind }) => kind !== 'interval');

function pence(text: string): number {
  const parsed = parsePence(text);
  if (!parsed.ok) throw new Error(`not an amount: ${text}`);
  return parsed.pence;
}

const penceIfGiven = (text?: string) => (text === undefined ? undefined : pence(text));

/** The APR, to one decimal, that these payments imply. */
function impliedPercent(product: Product, loan: number, monthly: number, final = monthly): number {
  return roundPercent(impliedProductApr(product, loan, monthly, final) ?? NaN);
}

/** The product a row describes; without a profile an effective APR and equal payments. */
function productOf(row: Row, changes: Partial<Product> = {}): Product {
  const apr = Math.round(row.apr * 100);
  const days = row.profile?.first_interval?.match(/^(\d+)\/365 years$/)?.[1];
  return buildProduct({
    creditProduct: row.id,
    numberOfRepayments: row.months,
    aprBasisPoints: apr,
    instalmentRounding: row.profile?.instalment_rounding ?? 'half_up',
    finalPayment: row.profile?.final_payment ?? (apr === 0 ? 'remainder' : 'equal'),
    deferralMonths: row.deferral_months ?? 0,
    firstIntervalDays: days === undefined ? null : Number(days),
    minLoanPence: 25_000,
    maxLoanPence: 5_000_000,
    ...changes,
  });
}

const covered = new Set<string>();

/** Jest's `test.each` of the rows that a filter takes; a row taken twice or by none fails. */
function eachRow(takes: (row: Row) => boolean) {
  const taken = ROWS.filter(takes);
  for (const row of taken) {
    if (covered.has(row.id)) throw new Error(`${row.id} is taken twice`);
    covered.add(row.id);
  }
  return test.each(taken);
}

/** The one published figure that no profile reproduces: its final payment is exempt. */
const FINAL_EXEMPT = 'etika-450-6+24';

eachRow((row) => row.profile !== undefined && row.id !== FINAL_EXEMPT)(
  'reproduces the published figures of: $id',
  (row) => {
    const product = productOf(row);
    const loan = pence(row.loan);
    const plan = planRepayments(product, loan);
    const flat = flatAnnualBasisPoints(product, loan, plan.costOfCreditPence);
    expect({
      monthly: formatPence(plan.monthlyRepaymentPence),
      final: formatPence(plan.finalRepaymentPence),
      total_amount_payable_excluding_deposit: formatPence(plan.totalPayablePence),
      cost_of_credit: formatPence(plan.costOfCreditPence),
      apr_1dp: impliedPercent(product, loan, plan.monthlyRepaymentPence, plan.finalRepaymentPence),
      flat_rate_2dp: formatPence(flat),
    }).toEqual(row.expected);
    expect(Math.max(1, product.deferralMonths)).toBe(row.profile?.first_payment_month);

    // Where the published totals are off, the note says that they come from the unrounded instalment.
    const totalsOff = row.status === 'exact_instalment_published_totals_off';
    const published = {
      loanPence: loan,
      monthlyRepaymentPence: pence(row.monthly),
      finalRepaymentPence: penceIfGiven(row.final_payment),
      totalPayablePence: totalsOff ? undefined : penceIfGiven(row.total_payable),
      costOfCreditPence: totalsOff ? undefined : penceIfGiven(row.cost),
    };
    expect(checkProduct(product, published)).toEqual([]);
    if (totalsOff) {
      const unrounded = roundPence(
        preparePlan(product).levelFactor * loan * product.numberOfRepayments,
        'half_up',
      );
      const withDeposit = unrounded + (penceIfGiven(row.deposit) ?? 0);
      expect(formatPence(withDeposit)).toBe(row.total_payable ?? row.total_payable_including_deposit);
      expect(checkProduct(product, { ...published, totalPayablePence: unrounded })).not.toEqual([]);
    }
    if (row.annual_rate_kind === 'nominal') {
      expect(nominalAnnualBasisPoints(product)).toBe(Math.round(row.annual_rate * 100));
    }
    if (row.annual_rate_kind === 'effective_equals_apr') {
      expect(effectiveAnnualBasisPoints(product)).toBe(Math.round(row.annual_rate * 100));
    }
  },
);

eachRow((row) => row.id === FINAL_EXEMPT)('reproduces all but the final payment of: $id', (row) => {
  const product = productOf(row, { settlementFeePence: 2_900 });
  const loan = pence(row.loan);
  const expected = row.expected;
  const plan = planRepayments(product, loan);
  expect(formatPence(plan.monthlyRepaymentPence)).toBe(row.monthly);
  expect(roundPercent(nominalAnnualBasisPoints(product) / 100)).toBe(row.annual_rate);
  // Counted in whole months the instalment would be 27.12, as the note says.
  const inMonths = productOf(row, { firstIntervalDays: null });
  expect(planRepayments(inMonths, loan).monthlyRepaymentPence).toBe(2_712);
  expect(checkProduct(product, { loanPence: loan, monthlyRepaymentPence: pence(row.monthly) })).toEqual([]);

  // The published final of 27.04 depends on the lender's own rounding of its balance; a balance carried unrounded
  // leaves 27.12. Cost, flat rate and implied APR follow from the final, so they are checked on the published figures.
  expect(formatPence(plan.finalRepaymentPence)).toBe('27.12');
  const flat = flatAnnualBasisPoints(product, loan, pence(row.cost));
  expect(formatPence(flat)).toBe(expected.flat_rate_2dp);
  const apr = impliedPercent(inMonths, loan, pence(row.monthly), pence(row.final_payment));
  expect(apr).toBe(expected.apr_1dp);
});

eachRow((row) => row.status === 'mismatch')('refuses the product of: $id', (row) => {
  const faults = checkProduct(productOf(row), {
    loanPence: pence(row.loan),
    monthlyRepaymentPence: pence(row.monthly),
    totalPayablePence: penceIfGiven(row.total_payable),
  });
  expect(faults.map(({ field }) => field)).toContain('publishedExample');
  const implied = row.note?.match(/implied (?:APR )?(\d+\.\d)/)?.[1];
  if (implied !== undefined) {
    expect(impliedPercent(productOf(row), pence(row.loan), pence(row.monthly))).toBe(Number(implied));
  }
  // It is the figures that are refused: the same product without them is sound.
  expect(checkProduct(productOf(row))).toEqual([]);
});

const APR_ONLY: Record<string, (row: Row) => void> = {
  // The published APR is itself rounded: no instalment follows from it.
  'northridge-15000-27': (row) => {
    const [loan, monthly] = [pence(row.loan), pence(row.monthly)];
    expect(impliedPercent(productOf(row), loan, monthly)).toBe(row.apr);
    expect(flatAnnualBasisPoints(productOf(row), loan, pence(row.cost))).toBe(635); // 6.346 %, published as 6.3
  },
  // A price that ends in 99: the payments add up, and the instalment is not the loan divided.
  'apple-779-24': (row) => {
    const [loan, monthly, final] = [pence(row.loan), pence(row.monthly), pence(row.final_payment)];
    expect(monthly * 23 + final).toBe(loan);
    expect(impliedPercent(productOf(row), loan, monthly, final)).toBe(row.apr);
  },
  // From the unrounded nominal: 12 % a year, 1 % a month.
  'cfa-10000-60': (row) => {
    const nominal = productOf(row, { rateBasis: 'nominal_annual', ratePpm: 120_000 });
    const [loan, monthly] = [pence(row.loan), pence(row.monthly)];
    expect(planRepayments(nominal, loan).monthlyRepaymentPence).toBe(monthly);
    expect(impliedPercent(nominal, loan, monthly)).toBe(row.apr);
    expect(checkProduct(nominal, { loanPence: loan, monthlyRepaymentPence: monthly })).toEqual([]);
  },
};

eachRow((row) => row.status === 'apr_only')('bears out the note of: $id', (row) =>
  (APR_ONLY[row.id] as (row: Row) => void)(row),
);

eachRow((row) => row.kind === 'apr_vector')('computes the APR of: $id', (row) => {
  const stated = row.apr;
  const apr = impliedApr(row.drawdowns, row.payments) ?? NaN;
  expect(roundPercent(apr)).toBe(roundPercent(stated));
  if (row.status !== 'exact_1dp') {
    const decimals = String(stated).split('.')[1]?.length ?? 0;
    expect(roundPercent(apr, decimals)).toBe(stated);
  }
});

eachRow((row) => row.kind === 'annuity_vector')('computes the level payment of: $id', (row) => {
  const ratePpm = Math.round(row.annual_rate * 10_000);
  const rate = { rateBasis: 'nominal_annual', ratePpm, finalPayment: 'equal' } as const;
  const product = productOf({ ...row, apr: 0 }, rate);
  const decimals = row.monthly.split('.')[1]?.length ?? 0;
  const level = preparePlan(product).levelFactor * Number(row.loan);
  expect(level.toFixed(decimals)).toBe(row.monthly);
});

eachRow((row) => row.kind === 'reference_impl')('follows the v12 profile in: $id', (row) => {
  // 0 %: half-up, then a penny more if the sum falls short, which is rounding up; interest: rounded down.
  const product = productOf(row, { instalmentRounding: row.apr === 0 ? 'ceil' : 'floor' });
  const plan = planRepayments(product, pence(row.loan));
  const { monthlyRepaymentPence, finalRepaymentPence, totalPayablePence, costOfCreditPence } = plan;
  const planned = [monthlyRepaymentPence, finalRepaymentPence, totalPayablePence, costOfCreditPence];
  expect(planned.map(formatPence)).toEqual([row.monthly, row.final_payment, row.total_payable, row.cost]);
  expect(checkProduct(product)).toEqual([]);
});

eachRow((row) => row.kind === 'apr_rounding')('rounds as in: $id', (row) => {
  const [, value, decimals] = row.note.match(/^round (\d+\.\d+) to (\d) dp$/) ?? [];
  // 3.055 to one decimal is 3.1, to two 3.06; as a double it lies below 3.055.
  expect(roundPercent(Number(value), Number(decimals))).toBe(row.apr);
});

test('every row of finance-cases.json is tested', () => {
  expect(ROWS).toHaveLength(58);
  expect(ROWS.filter(({ id }) => !covered.has(id))).toEqual([]);
});
