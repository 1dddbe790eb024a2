import {
  type DepositRule,
  type Product,
  type ProductTerms,
  isPossibleDeposit,
  isWithin,
  PRODUCT_BOUNDS,
  PRODUCT_CHOICES,
} from '../../domain/product';
import type { productVersions } from '../schema';

/** Terms, days of validity and the lender's name: all that makes a version. */
export interface ProductDefinition extends ProductTerms {
  readonly lenderName: string;
  readonly validFrom: string | null;
  readonly validTo: string | null;
}

/** Columns of product_versions that hold a definition. */
export type VersionColumns = Omit<typeof productVersions.$inferSelect, 'productId' | 'version' | 'createdAt'>;

/** A stored row as it may be after a restore or a repair by hand: every value is suspect. */
export type StoredProductRow = Readonly<Record<string, unknown>>;

type Check = readonly [name: string, holds: (row: StoredProductRow) => boolean];

const inRange = (name: string, field: keyof typeof PRODUCT_BOUNDS): Check => [
  name,
  (row) => isWithin(row[field], PRODUCT_BOUNDS[field]),
];
const oneOf = (name: string, field: keyof typeof PRODUCT_CHOICES): Check => [
  name,
  (row) => isOneOf(row[field], PRODUCT_CHOICES[field]),
];

/** Names by which people know the columns: those of the import file (docs/import-format.md). */
const CHECKS: readonly Check[] = [
  ['lender', (row) => isText(row['lender']) && isText(row['lenderName'])],
  inRange('number_of_repayments', 'numberOfRepayments'),
  [
    'apr',
    (row) =>
      isWithin(row['aprBasisPoints'], PRODUCT_BOUNDS.aprBasisPoints) &&
      Number(row['aprBasisPoints']) % 10 === 0,
  ],
  oneOf('rate_type', 'rateType'),
  oneOf('rate_basis', 'rateBasis'),
  [
    'rate',
    (row) =>
      row['rateBasis'] === 'apr_effective'
        ? isNull(row['ratePpm'])
        : isWithin(row['ratePpm'], PRODUCT_BOUNDS.ratePpm),
  ],
  oneOf('instalment_rounding', 'instalmentRounding'),
  [
    'final_payment',
    (row) =>
      isOneOf(row['finalPayment'], PRODUCT_CHOICES.finalPayment) &&
      (row['finalPayment'] === 'remainder') === (row['aprBasisPoints'] === 0),
  ],
  inRange('deferral_months', 'deferralMonths'),
  [
    'first_interval_days',
    (row) =>
      isNull(row['firstIntervalDays']) ||
      isWithin(row['firstIntervalDays'], PRODUCT_BOUNDS.firstIntervalDays),
  ],
  inRange('settlement_fee', 'settlementFeePence'),
  inRange('minimum_loan_amount', 'minLoanPence'),
  [
    'maximum_loan_amount',
    (row) =>
      isWithin(row['maxLoanPence'], [Number(row['minLoanPence']) || 0, PRODUCT_BOUNDS.maxLoanPence[1]]),
  ],
  ['minimum_deposit', (row) => isPossibleDeposit(row['depositMinBasisPoints'], row['depositMinFixedPence'])],
  ['maximum_deposit', (row) => isPossibleDeposit(row['depositMaxBasisPoints'], row['depositMaxFixedPence'])],
  oneOf('first_payment_type', 'firstPaymentType'),
  oneOf('annual_rate_shown', 'annualRateShown'),
  ['valid_from', (row) => isNull(row['validFrom']) || isDay(row['validFrom'])],
  [
    'valid_to',
    (row) => isNull(row['validTo']) || (isDay(row['validTo']) && ordered(row['validFrom'], row['validTo'])),
  ],
];

/**
 * Finds what keeps a stored row from being priced: cheap range checks, not the APR of its figures, which import checks.
 * @returns names of the fields at fault, in a stable order.
 */
export function corruptFieldsOf(row: StoredProductRow): string[] {
  // A current version that does not exist would otherwise be named once per column.
  if (isNull(row['version'])) return ['current_version'];
  return CHECKS.filter(([, holds]) => !holds(row)).map(([name]) => name);
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

/** The columns that a definition is stored in. */
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

/** A maximum that states no share leaves the whole price. */
const [, WHOLE_PRICE] = PRODUCT_BOUNDS.depositBasisPoints;

/** Both null: no rule; one null: no share of its own, or no fixed sum. */
export function toDepositRule(
  basisPoints: number | null,
  fixedPence: number | null,
  withoutShare = 0,
): DepositRule | null {
  if (basisPoints === null && fixedPence === null) return null;
  return { basisPoints: basisPoints ?? withoutShare, fixedPence: fixedPence ?? 0 };
}

export type ProductIdentity = Pick<Product, 'productId' | 'version' | 'displayOrder'>;

const isNull = (value: unknown) => value === null || value === undefined;
const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '';
const isOneOf = (value: unknown, allowed: readonly string[]) => allowed.includes(value as string);
const isDay = (value: unknown) => typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value);
const ordered = (from: unknown, to: unknown) => isNull(from) || (from as string) <= (to as string);
