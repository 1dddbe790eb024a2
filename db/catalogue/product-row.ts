import {
  HIGHEST_LOAN_PENCE,
  LOWEST_LOAN_PENCE,
  MOST_REPAYMENTS,
  type DepositRule,
  type Product,
  type ProductTerms,
} from '../../domain/product';
import type { productVersions } from '../schema';

/** Terms and days of validity: all that makes a version. */
export interface ProductDefinition extends ProductTerms {
  readonly validFrom: string | null;
  readonly validTo: string | null;
}

/** Columns of product_versions that hold a definition. */
export type VersionColumns = Omit<typeof productVersions.$inferSelect, 'productId' | 'version' | 'createdAt'>;

/** A stored row as it may be after a restore or a repair by hand: every value is suspect. */
export type StoredProductRow = Readonly<Record<string, unknown>>;

/** As in domain/product-check.ts: half the largest loan. */
const HIGHEST_FIXED_PENCE = 100_000_000;

/** Names by which people know the columns: those of the import file (docs/import-format.md). */
const CHECKS: readonly (readonly [name: string, holds: (row: StoredProductRow) => boolean])[] = [
  ['lender', (row) => isText(row['lender'])],
  ['number_of_repayments', (row) => within(row['numberOfRepayments'], 1, MOST_REPAYMENTS)],
  ['apr', (row) => within(row['aprBasisPoints'], 0, 1_000_000) && Number(row['aprBasisPoints']) % 10 === 0],
  ['rate_type', (row) => isOneOf(row['rateType'], 'fixed', 'variable')],
  ['rate_basis', (row) => isOneOf(row['rateBasis'], 'apr_effective', 'monthly_rate', 'nominal_annual')],
  [
    'rate',
    (row) =>
      row['rateBasis'] === 'apr_effective' ? isNull(row['ratePpm']) : within(row['ratePpm'], 0, 100_000_000),
  ],
  ['instalment_rounding', (row) => isOneOf(row['instalmentRounding'], 'half_up', 'floor', 'ceil')],
  [
    'final_payment',
    (row) =>
      isOneOf(
        row['finalPayment'],
        ...(row['aprBasisPoints'] === 0 ? ['remainder'] : ['equal', 'clear_balance']),
      ),
  ],
  ['deferral_months', (row) => within(row['deferralMonths'], 0, 60)],
  [
    'first_interval_days',
    (row) => isNull(row['firstIntervalDays']) || within(row['firstIntervalDays'], 1, 1_830),
  ],
  ['settlement_fee', (row) => within(row['settlementFeePence'], 0, HIGHEST_FIXED_PENCE)],
  ['minimum_loan_amount', (row) => within(row['minLoanPence'], LOWEST_LOAN_PENCE, HIGHEST_LOAN_PENCE)],
  [
    'maximum_loan_amount',
    (row) => within(row['maxLoanPence'], Number(row['minLoanPence']) || 0, HIGHEST_LOAN_PENCE),
  ],
  ['minimum_deposit', (row) => isDepositRule(row['depositMinBasisPoints'], row['depositMinFixedPence'])],
  ['maximum_deposit', (row) => isDepositRule(row['depositMaxBasisPoints'], row['depositMaxFixedPence'])],
  ['first_payment_type', (row) => isOneOf(row['firstPaymentType'], 'monthly_repayment', 'deposit', 'none')],
  ['annual_rate_shown', (row) => isOneOf(row['annualRateShown'], 'flat', 'nominal', 'effective')],
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

/** Reads a definition from a row without faults. */
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

/** Names of the columns in which two definitions differ; none: the same version. */
export function changedColumns(
  before: ProductDefinition,
  after: ProductDefinition,
): (keyof VersionColumns)[] {
  const [old, new_] = [toColumns(before), toColumns(after)];
  return (Object.keys(new_) as (keyof VersionColumns)[]).filter((column) => old[column] !== new_[column]);
}

/** A maximum that states no share leaves the whole price. */
const WHOLE_PRICE = 10_000;

/** Both null: no rule; one null: no share of its own, or no fixed sum. */
export function toDepositRule(
  basisPoints: number | null,
  fixedPence: number | null,
  withoutShare = 0,
): DepositRule | null {
  if (basisPoints === null && fixedPence === null) return null;
  return { basisPoints: basisPoints ?? withoutShare, fixedPence: fixedPence ?? 0 };
}

/** Whether stored deposit columns are no rule or a possible one. */
export function isDepositRule(basisPoints: unknown, fixedPence: unknown): boolean {
  return (
    (isNull(basisPoints) || within(basisPoints, 0, 10_000)) &&
    (isNull(fixedPence) || within(fixedPence, 0, HIGHEST_FIXED_PENCE))
  );
}

/** Columns that are not part of a definition, taken from a row of one product. */
export type ProductIdentity = Pick<Product, 'productId' | 'version' | 'displayOrder'>;

const isNull = (value: unknown) => value === null || value === undefined;
const isText = (value: unknown) => typeof value === 'string' && value.trim() !== '';
const isOneOf = (value: unknown, ...allowed: string[]) => allowed.includes(value as string);
const within = (value: unknown, low: number, high: number) =>
  Number.isSafeInteger(value) && (value as number) >= low && (value as number) <= high;
const isDay = (value: unknown) => typeof value === 'string' && /^\d{4}-\d{2}-\d{2}$/.test(value);
const ordered = (from: unknown, to: unknown) => isNull(from) || (from as string) <= (to as string);
