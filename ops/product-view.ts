import type { ProductDefinition } from '../db/catalogue/product-row';
import type { StoredProduct } from '../db/catalogue/products';
import { formatPence } from '../domain/money';
import type { DepositRule } from '../domain/product';
import type { Cell } from './output';

/** A percentage without needless zeros: units per percent are 100 for basis points, 10,000 for millionths. */
const percent = (value: number, unitsPerPercent: number) => String(value / unitsPerPercent);

/** A deposit rule in the words of the import file. */
export function depositView(rule: DepositRule | null): { percent: string; amount: string } | null {
  return rule === null
    ? null
    : { percent: percent(rule.basisPoints, 100), amount: formatPence(rule.fixedPence) };
}

/** A maximum: a fixed sum of 0 means none, and stays out, as in a file. */
function maximumDepositView(rule: DepositRule | null): { percent: string; amount?: string } | null {
  if (rule === null) return null;
  return {
    percent: percent(rule.basisPoints, 100),
    ...(rule.fixedPence > 0 && { amount: formatPence(rule.fixedPence) }),
  };
}

/** Terms in the words of the import file: what is shown can be imported. */
export function definitionView(terms: ProductDefinition) {
  return {
    credit_product: terms.creditProduct,
    lender: terms.lender,
    number_of_repayments: terms.numberOfRepayments,
    apr: (terms.aprBasisPoints / 100).toFixed(1),
    rate_type: terms.rateType,
    rate_basis: terms.rateBasis,
    rate: terms.ratePpm === null ? null : percent(terms.ratePpm, 10_000),
    instalment_rounding: terms.instalmentRounding,
    final_payment: terms.finalPayment,
    deferral_months: terms.deferralMonths,
    first_interval_days: terms.firstIntervalDays,
    settlement_fee: formatPence(terms.settlementFeePence),
    minimum_loan_amount: formatPence(terms.minLoanPence),
    maximum_loan_amount: formatPence(terms.maxLoanPence),
    minimum_deposit: depositView(terms.depositMin),
    maximum_deposit: maximumDepositView(terms.depositMax),
    first_payment_type: terms.firstPaymentType,
    annual_rate_shown: terms.annualRateShown,
    valid_from: terms.validFrom,
    valid_to: terms.validTo,
  };
}

/** A product as a row of an import file (docs/import-format.md). */
function productFileView({ merchantId, active, displayOrder, creditProduct, definition }: StoredProduct) {
  return {
    merchant_id: merchantId,
    ...(definition === null ? { credit_product: creditProduct } : definitionView(definition)),
    display_order: displayOrder,
    active,
  };
}

/** A product with its id and version. */
export const productView = (product: StoredProduct) => ({
  product_id: product.productId,
  version: product.version,
  ...productFileView(product),
});

/** Cells of a list; the last says whether it is offered on the given UK day. */
export function productCells(product: StoredProduct, today: string): Cell[] {
  const { merchantId, creditProduct, version, definition } = product;
  if (definition === null)
    return [merchantId, creditProduct, null, version, null, null, null, 'no: the version is lost'];
  const { apr, minimum_loan_amount: least, maximum_loan_amount: most } = definitionView(definition);
  const { lender, numberOfRepayments } = definition;
  return [
    merchantId,
    creditProduct,
    lender,
    version,
    numberOfRepayments,
    `${apr}%`,
    `${least} to ${most}`,
    offered(product, today),
  ];
}

function offered({ active, definition }: StoredProduct, today: string): string {
  if (!active) return 'no: inactive';
  const { validFrom = null, validTo = null } = definition ?? {};
  if (validFrom !== null && today < validFrom) return `from ${validFrom}`;
  if (validTo !== null && today > validTo) return `no: ended ${validTo}`;
  return 'yes';
}
