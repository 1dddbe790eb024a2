import type { MerchantFields } from '../db/catalogue/merchants';
import type { ProductDefinition } from '../db/catalogue/product-row';
import type { StoredProduct } from '../db/catalogue/products';
import { formatPence } from '../domain/money';
import type { DepositRule } from '../domain/product';
import { listed, snakeCased, type Answer } from './output';

/** A percentage without needless zeros: units per percent are 100 for basis points, 10,000 for millionths. */
const percent = (value: number, unitsPerPercent: number) => String(value / unitsPerPercent);

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

/** A version: its terms, and what its lender was called when it was made, which no file states. */
export const versionView = (version: ProductDefinition) => ({
  ...definitionView(version),
  lender_name: version.lenderName,
});

function productFileView({ merchantId, active, displayOrder, creditProduct, definition }: StoredProduct) {
  return {
    merchant_id: merchantId,
    ...(definition === null ? { credit_product: creditProduct } : definitionView(definition)),
    display_order: displayOrder,
    active,
  };
}

export const productView = (product: StoredProduct) => ({
  product_id: product.productId,
  version: product.version,
  lender_name: product.definition?.lenderName ?? null,
  ...productFileView(product),
});

/** Products, and whether each is offered on the given UK day. One whose version is lost has no terms to show. */
export function productTable(products: readonly StoredProduct[], today: string): Answer {
  const term = (name: 'lender' | 'number_of_repayments') => (product: StoredProduct) =>
    product.definition && definitionView(product.definition)[name];
  const shown = (show: (terms: ReturnType<typeof definitionView>) => string) => (product: StoredProduct) =>
    product.definition && show(definitionView(product.definition));
  return listed(products, productView, {
    merchant: 'merchant_id',
    'credit product': ({ creditProduct }) => creditProduct,
    lender: term('lender'),
    version: 'version',
    repayments: term('number_of_repayments'),
    APR: shown(({ apr }) => `${apr}%`),
    loans: shown((terms) => `${terms.minimum_loan_amount} to ${terms.maximum_loan_amount}`),
    'offered today': (product) => offered(product, today),
  });
}

function offered({ active, definition }: StoredProduct, today: string): string {
  if (definition === null) return 'no: the version is lost';
  if (!active) return 'no: inactive';
  const { validFrom, validTo } = definition;
  if (validFrom !== null && today < validFrom) return `from ${validFrom}`;
  if (validTo !== null && today > validTo) return `no: ended ${validTo}`;
  return 'yes';
}

/** A merchant as a row of an import file (docs/import-format.md): what is shown can be imported. */
export const merchantView = ({ depositFloor, partnerIds, ...rest }: MerchantFields) => ({
  ...snakeCased(rest),
  deposit_floor: depositView(depositFloor),
  partners: partnerIds,
});
