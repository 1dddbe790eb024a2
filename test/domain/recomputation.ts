import { Decimal } from 'decimal.js';
import type { DepositRule, Merchant, Product } from '../../domain/product';

// Prices once more, in decimals of 60 digits, by a program that was written from the design and the guide
// and shares no code with domain/. It takes whole pence and returns whole pence.

const D = Decimal.clone({ precision: 60, toExpNeg: -100, toExpPos: 100 });
type Rounding = 'half_up' | 'floor' | 'ceil';
const MODES = { half_up: D.ROUND_HALF_UP, floor: D.ROUND_FLOOR, ceil: D.ROUND_CEIL } as const;

/** Digits behind the 40th are the error of powers: a tie must be one. */
const rounded = (value: Decimal, mode: Rounding, places = 0) =>
  value.toDecimalPlaces(40, D.ROUND_HALF_EVEN).toDecimalPlaces(places, MODES[mode]);

const share = (price: number, { basisPoints }: DepositRule) =>
  Number(rounded(new D(price).mul(basisPoints).div(10_000), 'ceil'));

const smallest = (price: number, rule: DepositRule | null) =>
  rule === null ? 0 : Math.min(price, Math.max(share(price, rule), rule.fixedPence));

function largest(price: number, rule: DepositRule | null): number {
  if (rule === null) return price;
  return rule.fixedPence === 0 ? share(price, rule) : Math.min(share(price, rule), rule.fixedPence);
}

/** The rate of a month, and the months from drawdown to the first payment. */
function timesOf(product: Product): { rate: Decimal; first: Decimal } {
  const apr = new D(product.aprBasisPoints).div(10_000);
  const stated = new D(product.ratePpm ?? 0).div(1_000_000);
  const rate = {
    apr_effective: apr.plus(1).pow(new D(1).div(12)).minus(1),
    monthly_rate: stated,
    nominal_annual: stated.div(12),
  }[product.rateBasis];
  const { firstIntervalDays: days, deferralMonths } = product;
  return { rate, first: days === null ? new D(Math.max(1, deferralMonths)) : new D(days).mul(12).div(365) };
}

function planOf(product: Product, loan: number) {
  const { numberOfRepayments: n, finalPayment, instalmentRounding } = product;
  const { rate, first } = timesOf(product);
  const growth = rate.plus(1);
  const level = rate.isZero()
    ? new D(loan).div(n)
    : growth
        .pow(first.minus(1))
        .mul(loan)
        .mul(rate)
        .div(new D(1).minus(growth.pow(-n)));
  const lastAfter = (monthly: Decimal): Decimal => {
    if (finalPayment === 'equal') return monthly;
    // Every earlier payment has grown for 1 to n - 1 months when the last one is due.
    let balance = growth.pow(first.plus(n - 1)).mul(loan);
    const grown = rate.isZero() ? new D(n - 1) : growth.pow(n).minus(growth).div(rate);
    balance = balance.minus(monthly.mul(grown));
    return rounded(balance, 'half_up');
  };
  let monthly = rounded(level, instalmentRounding);
  if (lastAfter(monthly).lte(0)) monthly = rounded(level, 'floor');
  const last = lastAfter(monthly);
  const total = monthly.mul(n - 1).plus(last);
  const cost = total.minus(loan);
  const years = first.plus(n - 1).div(12);
  const annual = {
    flat: cost.div(loan).div(years),
    nominal: rate.mul(12),
    effective: growth.pow(12).minus(1),
  }[product.annualRateShown];
  return {
    monthly: Number(n === 1 ? last : monthly),
    last: Number(last),
    total: Number(total),
    cost: Number(cost),
    annual: Number(rounded(annual.mul(10_000), 'half_up')),
  };
}

const pounds = (pence: number) => `£${(pence / 100).toLocaleString('en-GB', { minimumFractionDigits: 2 })}`;

function words({ product, monthly, due }: Item): string | undefined {
  const percent = product.aprBasisPoints === 0 ? '0' : (product.aprBasisPoints / 100).toFixed(1);
  const representative = `${percent}% APR representative`;
  const varies = product.rateType === 'variable';
  const monthlyTexts = varies
    ? [`From ${pounds(monthly)} a month at ${representative} (variable).`]
    : percent === '0'
      ? [
          `Interest-free credit from ${pounds(monthly)} a month at ${representative}.`,
          `Interest-free from ${pounds(monthly)} a month, ${representative}.`,
        ]
      : [
          `Spread the cost from ${pounds(monthly)} a month at ${representative}.`,
          `From ${pounds(monthly)} a month at ${representative}.`,
        ];
  const once = `Pay ${pounds(monthly)} after ${due} at ${representative}${varies ? ' (variable)' : ''}.`;
  const texts = product.numberOfRepayments === 1 ? [once] : monthlyTexts;
  return texts.find((one) => [...`${one} Learn more`].length <= 80);
}

export interface Item extends ReturnType<typeof planOf> {
  readonly product: Product;
  readonly deposit: number;
  readonly loan: number;
  readonly firstPayment: number;
  /** As a summary has it: "30 days", "1 month". */
  readonly due: string;
}

/** What a quote must answer. @param loan, deposit as requested; @param today YYYY-MM-DD */
export function recompute(merchant: Merchant, loan: number, deposit: number, today: string) {
  const price = loan + deposit;
  const offered = merchant.products
    .filter(({ validFrom, validTo }) => (validFrom ?? today) <= today && today <= (validTo ?? today))
    .toSorted((a, b) => a.displayOrder - b.displayOrder || (a.creditProduct < b.creditProduct ? -1 : 1));
  const rules = offered.map(({ depositMin }) => depositMin);
  const same = new Set(rules.map((rule) => rule && `${rule.basisPoints} ${rule.fixedPence}`)).size === 1;
  const rule = merchant.depositFloor ?? (same ? (rules[0] ?? null) : null);
  const used = Math.max(deposit, smallest(price, rule));
  const fitted = offered.flatMap((product): Item[] => {
    const own = Math.max(used, smallest(price, product.depositMin));
    const lent = price - own;
    const fits = own <= largest(price, product.depositMax) && lent >= product.minLoanPence;
    if (!fits || lent > product.maxLoanPence) return [];
    const plan = planOf(product, lent);
    const firstPayment = { monthly_repayment: plan.monthly, deposit: own, none: 0 }[product.firstPaymentType];
    const { firstIntervalDays: days, deferralMonths: months } = product;
    const [count, unit] = days === null ? [Math.max(1, months), 'month'] : [days, 'day'];
    const due = `${count} ${unit}${count === 1 ? '' : 's'}`;
    return [{ product, deposit: own, loan: lent, firstPayment, due, ...plan }];
  });
  const priced = merchant.summaryStyle === null ? merchant.showProducts : merchant.summaryStyle === 'offer';
  const best = fitted
    .filter((item) => item.deposit === used)
    .toSorted((a, b) => a.monthly - b.monthly)
    .at(0);
  const text = best && priced && merchant.fcaAuthorised ? words(best) : undefined;
  return {
    fitted,
    shown: merchant.fcaAuthorised && merchant.showProducts ? fitted : [],
    summary: fitted.length === 0 ? null : `${text ?? 'Spread the cost with finance.'} Learn more`,
    link: [price - used, used],
    corrected: used > deposit ? used : null,
  };
}
