/** How the contractual rate of a product is expressed. */
type RateBasis =
  /** Monthly rate `(1 + APR)^(1/12) − 1`. */
  | 'apr_effective'
  /** `ratePpm` is the rate per month. */
  | 'monthly_rate'
  /** `ratePpm` is a nominal yearly rate, charged at a twelfth per month. */
  | 'nominal_annual';

export type InstalmentRounding = 'half_up' | 'floor' | 'ceil';

/** What the last payment is: the same as the others, what is left of an interest-free sum, or what clears the balance. */
type FinalPayment = 'equal' | 'remainder' | 'clear_balance';

/** What is taken first, and so what `first_payment_amount` says (see docs/partner-guide.md). */
export type FirstPaymentType =
  /** The first monthly repayment: `first_payment_amount` is the monthly repayment. */
  | 'monthly_repayment'
  /** The customer deposit, paid to the merchant: `first_payment_amount` is the deposit used. */
  | 'deposit'
  /** Nothing is taken before repayments begin: `first_payment_amount` is 0.00. */
  | 'none';

/** Which figure `annual_interest_rate` shows. */
export type AnnualRateShown = 'flat' | 'nominal' | 'effective';

/** A share of the purchase price, a fixed sum, or both; see domain/deposit.ts for how they combine. */
export interface DepositRule {
  /** Share of the purchase price in basis points, 0–10,000. */
  readonly basisPoints: number;
  /** Fixed sum in pence, ≥ 0. */
  readonly fixedPence: number;
}

/** The contractual terms of one credit product. Money in integer pence, rates as integers; bounds in domain/product-bounds.ts. */
export interface ProductTerms {
  /** Key of the lender whose product it is. */
  readonly lender: string;
  /** Name of the product, unique within its merchant; it identifies the product on a finance link. */
  readonly creditProduct: string;
  readonly numberOfRepayments: number;
  /** Displayed contractual APR in basis points (9.9 % = 990); a multiple of 10, as APRs have one decimal. */
  readonly aprBasisPoints: number;
  readonly rateType: 'fixed' | 'variable';
  readonly rateBasis: RateBasis;
  /** Rate in millionths (0.79 % a month = 7,900); null exactly when the basis is `apr_effective`. */
  readonly ratePpm: number | null;
  readonly instalmentRounding: InstalmentRounding;
  readonly finalPayment: FinalPayment;
  /** Months deferred (buy now pay later); the first payment then falls at that month. 0: at month 1. */
  readonly deferralMonths: number;
  /** Days from drawdown to the first payment where the agreement counts days; null: whole months. */
  readonly firstIntervalDays: number | null;
  /** Fee for settling within the deferral, in pence; disclosed by the merchant, outside the APR. */
  readonly settlementFeePence: number;
  readonly minLoanPence: number;
  readonly maxLoanPence: number;
  /** Smallest deposit; null: none required. */
  readonly depositMin: DepositRule | null;
  /** Largest deposit; null: up to the price. A `fixedPence` of 0 in a maximum means "no fixed cap". */
  readonly depositMax: DepositRule | null;
  readonly firstPaymentType: FirstPaymentType;
  readonly annualRateShown: AnnualRateShown;
}

/** One version of a merchant's product, as quotes are priced with it. */
export interface Product extends ProductTerms {
  readonly productId: string;
  /** Version of the terms, from 1. */
  readonly version: number;
  /** The lender's name when the version was made: what partners are shown. */
  readonly lenderName: string;
  /** Place in the merchant's own order, ascending. */
  readonly displayOrder: number;
  /** First UK calendar day (YYYY-MM-DD) it is offered; null: always has been. */
  readonly validFrom: string | null;
  /** Last UK calendar day (YYYY-MM-DD, inclusive) it is offered; null: no end. */
  readonly validTo: string | null;
}

/** Lowest and highest loan any credit product can offer, in pence. */
export const LOWEST_LOAN_PENCE = 1_000;
export const HIGHEST_LOAN_PENCE = 200_000_000;
