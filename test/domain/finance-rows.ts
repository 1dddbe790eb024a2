import type { CashFlow } from '../../domain/apr';
import { parsePence } from '../../domain/money';
import type { InstalmentRounding, Product } from '../../domain/product';
import rows from '../vectors/finance-cases.json';
import { buildProduct } from './builders';

/** A row of finance-cases.json: published figures, with the profile that reproduces them where there is one. */
export interface Row {
  readonly id: string;
  readonly kind: string;
  readonly status: string;
  readonly note?: string;
  readonly loan?: string;
  readonly deposit?: string;
  readonly months?: number;
  readonly deferral_months?: number;
  readonly apr?: number;
  readonly annual_rate?: number;
  readonly annual_rate_kind?: string;
  readonly monthly?: string;
  readonly final_payment?: string;
  readonly total_payable?: string;
  readonly total_payable_including_deposit?: string;
  readonly cost?: string;
  readonly profile?: {
    readonly rate_basis: string;
    readonly instalment_rounding: string;
    readonly final_payment: string;
    readonly first_interval?: string;
    readonly first_payment_month: number;
  };
  readonly expected?: {
    readonly monthly: string;
    readonly final: string;
    readonly total_amount_payable_excluding_deposit: string;
    readonly cost_of_credit: string;
    readonly apr_1dp: number;
    readonly flat_rate_2dp: string;
  };
  readonly drawdowns?: readonly CashFlow[];
  readonly payments?: readonly CashFlow[];
  readonly from?: string;
  readonly to?: string;
  readonly interval?: string;
}

export const ROWS = rows as unknown as readonly Row[];

export function given<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('the row lacks a field');
  return value;
}

export function pence(text: string | undefined): number {
  const parsed = parsePence(given(text));
  if (!parsed.ok) throw new Error(`not an amount: ${text}`);
  return parsed.pence;
}

export function penceIfGiven(text: string | undefined): number | undefined {
  return text === undefined ? undefined : pence(text);
}

/** The product a row describes; without a profile an effective APR and equal payments. */
export function productOf(row: Row, changes: Partial<Product> = {}): Product {
  const apr = Math.round(given(row.apr) * 100);
  const days = row.profile?.first_interval?.match(/^(\d+)\/365 years$/)?.[1];
  return buildProduct({
    creditProduct: row.id,
    numberOfRepayments: given(row.months),
    aprBasisPoints: apr,
    instalmentRounding: (row.profile?.instalment_rounding ?? 'half_up') as InstalmentRounding,
    finalPayment: (row.profile?.final_payment ??
      (apr === 0 ? 'remainder' : 'equal')) as Product['finalPayment'],
    deferralMonths: row.deferral_months ?? 0,
    firstIntervalDays: days === undefined ? null : Number(days),
    minLoanPence: 25_000,
    maxLoanPence: 5_000_000,
    ...changes,
  });
}
