import type { MerchantFields } from '../db/catalogue/merchants';
import type { ProductDefinition } from '../db/catalogue/product-row';
import type { StoredProduct } from '../db/catalogue/products';
import { formatPence } from '../domain/money';
import { nameFault } from '../domain/name';
import type { DepositRule } from '../domain/product';
import { listed, snakeCased } from './output';

/** A percentage without needless zeros: units per percent are 100 for basis points, 10,000 for millionths. */
const percent = (value: number, unitsPerPercent: number) => String(value / unitsPerPercent);

const depositView = ({ basisPoints, fixedPence }: DepositRule) => ({
  percent: percent(basisPoints, 100),
  amount: formatPence(fixedPence),
});

/** A maximum without a fixed sum has no amount, as in a file. */
const maximumDepositView = ({ basisPoints, fixedPence }: DepositRule) =>
  fixedPence > 0 ? depositView({ basisPoints, fixedPence }) : { percent: percent(basisPoints, 100) };

/** Terms in the words of the import file. */
function definitionView(terms: ProductDefinition) {
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
    minimum_deposit: terms.depositMin && depositView(terms.depositMin),
    maximum_deposit: terms.depositMax && maximumDepositView(terms.depositMax),
    first_payment_type: terms.firstPaymentType,
    annual_rate_shown: terms.annualRateShown,
    valid_from: terms.validFrom,
    valid_to: terms.validTo,
  };
}

/** A product with these terms as a row of an import file. */
export const productRow = (
  { merchantId, displayOrder, active }: Pick<StoredProduct, 'merchantId' | 'displayOrder' | 'active'>,
  terms: ProductDefinition,
) => ({ merchant_id: merchantId, ...definitionView(terms), display_order: displayOrder, active });

/** A version: its terms, and what its lender was called when it was made, which no file states. */
export const versionView = (version: ProductDefinition) => ({
  ...definitionView(version),
  lender_name: version.lenderName,
});

export const productView = ({ definition, ...product }: StoredProduct) => ({
  product_id: product.productId,
  version: product.version,
  lender_name: definition?.lenderName ?? null,
  merchant_id: product.merchantId,
  ...(definition === null ? { credit_product: product.creditProduct } : definitionView(definition)),
  display_order: product.displayOrder,
  active: product.active,
  /** Why an import would refuse its name today; null: it would not. A stored name stays valid. */
  name_problem: nameFault(product.creditProduct),
});

/** Products, and whether each is offered on the given UK day. One whose version is lost has no terms to show. */
export function productTable(products: readonly StoredProduct[], today: string) {
  type Terms = ReturnType<typeof definitionView>;
  const shown = (show: (terms: Terms) => string | number) => (product: StoredProduct) =>
    product.definition && show(definitionView(product.definition));
  return listed(products, productView, {
    merchant: 'merchant_id',
    'credit product': ({ creditProduct }) => creditProduct,
    lender: shown(({ lender }) => lender),
    version: 'version',
    repayments: shown((terms) => terms.number_of_repayments),
    APR: shown(({ apr }) => `${apr}%`),
    loans: shown((terms) => `${terms.minimum_loan_amount} to ${terms.maximum_loan_amount}`),
    'offered today': (product) => offered(product, today),
    'its name': ({ creditProduct }) => nameFault(creditProduct),
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
  deposit_floor: depositFloor && depositView(depositFloor),
  partners: partnerIds,
});
