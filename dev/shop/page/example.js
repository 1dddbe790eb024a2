// The display rules of the partner guide, as code.
import { element, labelOf, pounds } from './common.js';

const AMOUNTS = new Set([
  'purchase_price',
  'customer_deposit',
  'loan_amount',
  'first_payment_amount',
  'monthly_repayment',
  'cost_of_credit',
  'total_amount_payable_excluding_deposit',
]);

/** The products that may be shown: none when a notice speaks against it, known or not. */
export const shownProducts = ({ summary, products, products_notice: notice }) =>
  summary.display && notice === undefined ? products : [];

/** The merchant's disclosure is due where the summary or a product has an APR above 0%, or a term above 12 months. */
export function needsDisclosure(quote) {
  const isDue = ({ apr, number_of_repayments: months }) => Number.parseFloat(apr) > 0 || months > 12;
  return (
    quote.summary.display &&
    (/\d% APR/.test(quote.summary.finance_offer_summary) || shownProducts(quote).some(isDue))
  );
}

/** The product that the summary speaks of: the one whose price, APR and kind of rate it names. */
export const productOfSummary = (quote) =>
  shownProducts(quote).find(({ apr, number_of_repayments: repayments, monthly_repayment: amount }) => {
    const words = quote.summary.finance_offer_summary;
    const [rate, kind] = apr.split(' ');
    return (
      words.includes(repayments === 1 ? `Pay ${pounds(amount)} after ` : ` ${pounds(amount)} a month`) &&
      words.includes(` ${rate} APR`) &&
      words.includes('(variable)') === (kind === 'Variable')
    );
  });

/** A representative example in the form that UK rules want (CONC 3.5). Nothing is computed here. */
export function exampleOf(product) {
  const [rate, kind = 'Fixed'] = product.apr.split(' ');
  const { initial_payment_due_value: due, initial_payment_due_unit: unit } = product;
  const first = `${due} ${due === 1 ? unit.replace(/s$/, '') : unit}`;
  const amount = pounds(product.monthly_repayment);
  const repayments =
    product.number_of_repayments === 1
      ? `one repayment of ${amount}, due after ${first}`
      : `duration ${product.number_of_repayments} monthly repayments of ${amount}, the first due after ${first}`;
  return [
    `Representative example: cash price ${pounds(product.purchase_price)}`,
    `deposit ${pounds(product.customer_deposit)}`,
    `total amount of credit ${pounds(product.loan_amount)}`,
    repayments,
    `total amount payable ${pounds(product.total_amount_payable_excluding_deposit)}, excluding the deposit`,
    `interest rate ${product.annual_interest_rate} a year (${kind.toLowerCase()})`,
    `${rate} APR representative (${kind.toLowerCase()}).`,
  ].join('; ');
}

/** Every field of a product, all in the same type. */
export function figuresOf(product) {
  const rows = Object.entries(product).map(([field, value]) =>
    element('div', {}, element('dt', {}, labelOf(field)), element('dd', {}, valueOf(field, value))),
  );
  return element('dl', { className: 'figures' }, ...rows);
}

function valueOf(field, value) {
  if (field === 'first_payment_type') return labelOf(value);
  // Exactly as it came.
  if (field === 'merchant_finance_url') return element('a', { href: value }, 'Apply');
  return AMOUNTS.has(field) ? pounds(value) : String(value);
}
