// The display rules of the partner guide, as code.

/** Field names are designed for display: `_` becomes a space, the first letter a capital, and an abbreviation capitals. */
export function labelOf(field) {
  const text = field.replaceAll('_', ' ').replace(/\b(apr|url)\b/, (word) => word.toUpperCase());
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const AMOUNTS = new Set([
  'purchase_price',
  'customer_deposit',
  'loan_amount',
  'first_payment_amount',
  'monthly_repayment',
  'cost_of_credit',
  'total_amount_payable_excluding_deposit',
]);

function textOf(field, value) {
  if (!AMOUNTS.has(field)) return field === 'first_payment_type' ? labelOf(value) : String(value);
  const [pounds, pence] = value.split('.');
  return `£${pounds.replaceAll(/\B(?=(\d{3})+$)/g, ',')}.${pence}`;
}

/** The merchant's disclosure is due above 0% APR, and for terms above 12 months. */
export function needsDisclosure(products) {
  return products.some(
    ({ apr, number_of_repayments }) => Number.parseFloat(apr) > 0 || number_of_repayments > 12,
  );
}

/**
 * What a shopper may be shown of an answer: nothing at all when `display` is false, products only when there are some and
 * no notice speaks against it.
 * @returns {Node[]}
 */
export function renderOffer(data, disclosure) {
  const { summary, products, products_notice: notice, deposit_adjustment: adjustment } = data;
  if (!summary.display) return [];
  const shown = [element('p', { className: 'summary', innerHTML: summary.finance_offer_summary })];
  if (adjustment !== undefined) {
    const raised = `Deposit: £${adjustment.corrected_deposit}. ${adjustment.adjustment_reason}`;
    shown.push(element('p', { className: 'deposit', textContent: raised }));
  }
  const listed = notice === undefined ? products : [];
  if (listed.length > 0) shown.push(productTables(listed));
  // The summary may name an offer above 0% even where no list is given.
  if (needsDisclosure(listed) || (listed.length === 0 && /\d/.test(shown[0].textContent))) {
    shown.push(element('p', { className: 'disclosure', textContent: disclosure }));
  }
  return shown;
}

/** A table for each product, all in the same type; side by side where there is room, and none out of sight where there is not. */
function productTables(products) {
  const box = element('div', { className: 'products' });
  for (const [at, product] of products.entries()) {
    const table = element('table', {});
    table.append(
      element('caption', { textContent: `Representative example ${at + 1} of ${products.length}` }),
    );
    const body = element('tbody', {});
    const link = element('a', { textContent: `Apply for ${product.credit_product}` });
    // Exactly as it came.
    link.setAttribute('href', product.merchant_finance_url);
    for (const [field, value] of Object.entries(product)) {
      body.append(row(labelOf(field), field === 'merchant_finance_url' ? link : textOf(field, value)));
    }
    table.append(body);
    box.append(table);
  }
  return box;
}

function row(label, value) {
  const line = element('tr', {});
  const cell = element('td', {});
  cell.append(value);
  line.append(element('th', { scope: 'row', textContent: label }), cell);
  return line;
}

export function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}
