import { isPossibleDeposit, isWithin, PRODUCT_BOUNDS, PRODUCT_CHOICES } from '../../domain/product';
import type { Product, ProductTerms } from '../../domain/product';
import type { productVersions } from '../schema';

export interface ProductDefinition extends ProductTerms {
  readonly lenderName: string;
  readonly validFrom: string | null;
  readonly validTo: string | null;
}

export type VersionColumns = Omit<typeof productVersions.$inferSelect, 'productId' | 'version' | 'createdAt'>;

/** A stored row, in which a restore or a repair by hand may have left any value. */
export type StoredProductRow = Readonly<Record<string, unknown>>;

const isNull = (value: unknown) => value === null || value === undefined;
const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '';
const isDay = (value: unknown) => typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value);
const ordered = (from: unknown, to: unknown) => isNull(from) || (from as string) <= (to as string);

type Check = (row: StoredProductRow) => boolean;

const inRange =
  (field: keyof typeof PRODUCT_BOUNDS): Check =>
  (row) =>
    isWithin(row[field], PRODUCT_BOUNDS[field]);
const oneOf =
  (field: keyof typeof PRODUCT_CHOICES): Check =>
  (row) =>
    PRODUCT_CHOICES[field].includes(row[field] as never);

/** Checks by the names of the columns in the import file (docs/import-format.md). */
const CHECKS: Readonly<Record<string, Check>> = {
  lender: (row) => isText(row['lender']) && isText(row['lenderName']),
  number_of_repayments: inRange('numberOfRepayments'),
  apr: (row) => inRange('aprBasisPoints')(row) && Number(row['aprBasisPoints']) % 10 === 0,
  rate_type: oneOf('rateType'),
  rate_basis: oneOf('rateBasis'),
  rate: (row) => (row['rateBasis'] === 'apr_effective' ? isNull(row['ratePpm']) : inRange('ratePpm')(row)),
  instalment_rounding: oneOf('instalmentRounding'),
  final_payment: (row) =>
    oneOf('finalPayment')(row) && (row['finalPayment'] === 'remainder') === (row['aprBasisPoints'] === 0),
  deferral_months: inRange('deferralMonths'),
  first_interval_days: (row) => isNull(row['firstIntervalDays']) || inRange('firstIntervalDays')(row),
  settlement_fee: inRange('settlementFeePence'),
  minimum_loan_amount: inRange('minLoanPence'),
  maximum_loan_amount: (row) =>
    isWithin(row['maxLoanPence'], [Number(row['minLoanPence']) || 0, PRODUCT_BOUNDS.maxLoanPence[1]]),
  minimum_deposit: (row) => isPossibleDeposit(row['depositMinBasisPoints'], row['depositMinFixedPence']),
  maximum_deposit: (row) => isPossibleDeposit(row['depositMaxBasisPoints'], row['depositMaxFixedPence']),
  first_payment_type: oneOf('firstPaymentType'),
  annual_rate_shown: oneOf('annualRateShown'),
  valid_from: (row) => isNull(row['validFrom']) || isDay(row['validFrom']),
  valid_to: (row) =>
    isNull(row['validTo']) || (isDay(row['validTo']) && ordered(row['validFrom'], row['validTo'])),
};

/** Names of the fields for which a stored row cannot be priced, in a stable order. */
export function corruptFieldsOf(row: StoredProductRow): string[] {
  // A missing current version would otherwise be named once per column.
  if (isNull(row['version'])) return ['current_version'];
  return Object.keys(CHECKS).filter((name) => CHECKS[name]?.(row) !== true);
}

export function toDefinition(creditProduct: string, row: VersionColumns): ProductDefinition {
  const {
    depositMinBasisPoints,
    depositMinFixedPence,
    depositMaxBasisPoints,
    depositMaxFixedPence,
    ...rest
  } = row;
  return {
    ...rest,
    creditProduct,
    depositMin: toDepositRule(depositMinBasisPoints, depositMinFixedPence),
    depositMax: toDepositRule(depositMaxBasisPoints, depositMaxFixedPence, WHOLE_PRICE),
  };
}

export function toColumns(definition: ProductDefinition): VersionColumns {
  const { creditProduct: _, depositMin, depositMax, ...rest } = definition;
  return {
    ...rest,
    depositMinBasisPoints: depositMin?.basisPoints ?? null,
    depositMinFixedPence: depositMin?.fixedPence ?? null,
    depositMaxBasisPoints: depositMax?.basisPoints ?? null,
    depositMaxFixedPence: depositMax?.fixedPence ?? null,
  };
}

const [, WHOLE_PRICE] = PRODUCT_BOUNDS.depositBasisPoints;

/** Both null: no rule. One null: no share, or no fixed sum. */
export function toDepositRule(basisPoints: number | null, fixedPence: number | null, withoutShare = 0) {
  if (basisPoints === null && fixedPence === null) return null;
  return { basisPoints: basisPoints ?? withoutShare, fixedPence: fixedPence ?? 0 };
}

export type ProductIdentity = Pick<Product, 'productId' | 'version' | 'displayOrder'>;
