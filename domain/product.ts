export const PRODUCT_CHOICES = {
  rateType: ['fixed', 'variable'],
  /** Monthly `(1 + APR)^(1/12) − 1`, ratePpm itself, or a twelfth of it. */
  rateBasis: ['apr_effective', 'monthly_rate', 'nominal_annual'],
  instalmentRounding: ['half_up', 'floor', 'ceil'],
  /** The last payment: like the others, the rest of an interest-free sum, or what clears the balance. */
  finalPayment: ['equal', 'remainder', 'clear_balance'],
  /** What `first_payment_amount` shows: the monthly repayment, the deposit, or 0.00. */
  firstPaymentType: ['monthly_repayment', 'deposit', 'none'],
  annualRateShown: ['flat', 'nominal', 'effective'],
} as const;
type Choice<Term extends keyof typeof PRODUCT_CHOICES> = (typeof PRODUCT_CHOICES)[Term][number];

export interface DepositRule {
  /** Share of the purchase price in basis points, 0–10,000. */
  readonly basisPoints: number;
  /** Fixed sum in pence, ≥ 0. */
  readonly fixedPence: number;
}

/** The contractual terms of one credit product. Money is in integer pence, rates are integers. */
export interface ProductTerms {
  readonly lender: string;
  /** Name of the product, unique within its merchant, which identifies it on a finance link. */
  readonly creditProduct: string;
  readonly numberOfRepayments: number;
  /** Displayed contractual APR in basis points (9.9 % = 990), a multiple of 10. */
  readonly aprBasisPoints: number;
  readonly rateType: Choice<'rateType'>;
  readonly rateBasis: Choice<'rateBasis'>;
  /** Rate in millionths (0.79 % a month = 7,900); null only for `apr_effective`. */
  readonly ratePpm: number | null;
  readonly instalmentRounding: Choice<'instalmentRounding'>;
  readonly finalPayment: Choice<'finalPayment'>;
  /** Months deferred (buy now pay later), when the first payment falls. 0: at month 1. */
  readonly deferralMonths: number;
  /** Days from drawdown to the first payment where the agreement counts days; null: whole months. */
  readonly firstIntervalDays: number | null;
  /** Fee for settling within the deferral, in pence, outside the APR. */
  readonly settlementFeePence: number;
  readonly minLoanPence: number;
  readonly maxLoanPence: number;
  /** Smallest deposit; null: none required. */
  readonly depositMin: DepositRule | null;
  /** Largest deposit; null: up to the price. A `fixedPence` of 0 means no fixed cap. */
  readonly depositMax: DepositRule | null;
  readonly firstPaymentType: Choice<'firstPaymentType'>;
  readonly annualRateShown: Choice<'annualRateShown'>;
}

export interface Product extends ProductTerms {
  readonly productId: string;
  readonly version: number;
  readonly lenderName: string;
  /** Place in the merchant's own order, ascending. */
  readonly displayOrder: number;
  /** First UK calendar day (YYYY-MM-DD) on which it is offered; null: no beginning. */
  readonly validFrom: string | null;
  /** Last UK calendar day (YYYY-MM-DD) on which it is offered; null: no end. */
  readonly validTo: string | null;
}

export const LOWEST_LOAN_PENCE = 1_000;
export const HIGHEST_LOAN_PENCE = 200_000_000;

/** £1,000,000 of fixed deposit or fee: half the largest loan. */
const HIGHEST_FIXED_PENCE = 100_000_000;

export const PRODUCT_BOUNDS = {
  numberOfRepayments: [1, 120],
  /** 10,000 %, above any APR in the market, and still exact in doubles over the longest term. */
  aprBasisPoints: [0, 1_000_000],
  /** 10,000 % a month or a year, in millionths. The comparison with the APR decides what is sensible. */
  ratePpm: [0, 100_000_000],
  deferralMonths: [0, 60],
  firstIntervalDays: [1, 1_830],
  settlementFeePence: [0, HIGHEST_FIXED_PENCE],
  minLoanPence: [LOWEST_LOAN_PENCE, HIGHEST_LOAN_PENCE],
  maxLoanPence: [LOWEST_LOAN_PENCE, HIGHEST_LOAN_PENCE],
  depositBasisPoints: [0, 10_000],
  depositFixedPence: [0, HIGHEST_FIXED_PENCE],
} as const satisfies Readonly<Record<string, readonly [lowest: number, highest: number]>>;

/** Longest name of a lender or product, few enough characters for a link. */
export const LONGEST_PRODUCT_NAME = 120;

export const isWithin = (value: unknown, [lowest, highest]: readonly [number, number]): boolean =>
  Number.isSafeInteger(value) && (value as number) >= lowest && (value as number) <= highest;

export const isPossibleDeposit = (basisPoints: unknown, fixedPence: unknown): boolean =>
  isWithin(basisPoints ?? 0, PRODUCT_BOUNDS.depositBasisPoints) &&
  isWithin(fixedPence ?? 0, PRODUCT_BOUNDS.depositFixedPence);

export interface Merchant {
  readonly merchantId: string;
  readonly tradingName: string;
  /** Whether the merchant may communicate regulated credit promotions (FCA). */
  readonly fcaAuthorised: boolean;
  readonly showProducts: boolean;
  /**
   * `offer`: the best offer that fits; `headline`: always the plain headline; null, not stated: an offer
   * where the list is shown, else the headline.
   */
  readonly summaryStyle: 'offer' | 'headline' | null;
  /** Merchant-wide minimum deposit; null: the products' own rules decide. */
  readonly depositFloor: DepositRule | null;
  /** All active products, in no order and of any day. Empty only for a merchant that is not authorised. */
  readonly products: readonly Product[];
}

export interface MerchantSetup extends Omit<Merchant, 'tradingName' | 'fcaAuthorised'> {
  readonly tradingName: string | null;
  readonly fcaAuthorised: boolean | null;
  /** Fields of stored products that cannot be priced. */
  readonly corruptFields: readonly string[];
}

/**
 * Checks whether a merchant can be quoted for.
 * @returns the merchant, or the names of what is missing or corrupt, in a stable order
 */
export function completeMerchant(setup: MerchantSetup): { merchant: Merchant } | { missingFields: string[] } {
  const missingFields: string[] = [];
  if (setup.tradingName === null || setup.tradingName.trim() === '') missingFields.push('trading_name');
  if (setup.fcaAuthorised === null) missingFields.push('fca_authorised');
  const productless = setup.products.length === 0 && setup.corruptFields.length === 0;
  if (productless && setup.fcaAuthorised !== false) missingFields.push('products');
  missingFields.push(...setup.corruptFields);
  const { tradingName, fcaAuthorised, corruptFields: _, ...rest } = setup;
  if (missingFields.length > 0 || tradingName === null || fcaAuthorised === null) return { missingFields };
  return { merchant: { ...rest, tradingName, fcaAuthorised } };
}

const orders = new WeakMap<readonly Product[], readonly Product[]>();

function inMerchantOrder(products: readonly Product[]): readonly Product[] {
  let ordered = orders.get(products);
  if (ordered === undefined) {
    ordered = products.toSorted(
      (a, b) => a.displayOrder - b.displayOrder || (a.creditProduct < b.creditProduct ? -1 : 1),
    );
    orders.set(products, ordered);
  }
  return ordered;
}

/** The products offered on a day (YYYY-MM-DD), in the merchant's order. Both ends are inclusive. */
export function offeredProducts(products: readonly Product[], today: string): Product[] {
  return inMerchantOrder(products).filter(
    ({ validFrom, validTo }) =>
      (validFrom === null || validFrom <= today) && (validTo === null || today <= validTo),
  );
}

const london = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Europe/London',
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
});

let minute = Number.NaN;
let day = '';

/** The UK calendar day (YYYY-MM-DD) of a moment, formatted once a minute. */
export function ukDay(moment: Date): string {
  const current = Math.floor(moment.getTime() / 60_000);
  if (current !== minute) {
    // How a language orders them changes with ICU: its release 72 gave en-CA the order of the United States.
    const parts = new Map(london.formatToParts(moment).map(({ type, value }) => [type, value]));
    day = `${parts.get('year')}-${parts.get('month')}-${parts.get('day')}`;
    minute = current;
  }
  return day;
}
