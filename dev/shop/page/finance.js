// The merchant's finance page: where "Learn more" and the products' links of a quote lead.
import { at, element, get, post, pounds, showFault } from './common.js';
import { exampleOf, figuresOf, needsDisclosure, productOfSummary, shownProducts } from './example.js';

const link = new URLSearchParams(location.search);
const quoteId = link.get('service_quote_id') ?? '';
const [{ disclosure }, quote] = await Promise.all([
  get('/setup'),
  get(`/quote?id=${encodeURIComponent(quoteId)}`),
]);
const products = quote === null ? [] : shownProducts(quote);

function choose(product) {
  at('open').textContent = `Apply for ${product.credit_product}`;
  // This page is where its link leads.
  const { merchant_finance_url: _here, ...figures } = product;
  at('example').replaceChildren(element('p', {}, exampleOf(product)), figuresOf(figures));
  if (needsDisclosure(quote)) at('example').append(element('p', {}, disclosure));
}

function option(product, checked) {
  const radio = element('input', { type: 'radio', name: 'product', value: product.credit_product, checked });
  radio.addEventListener('change', () => choose(product));
  return element('label', {}, radio, product.credit_product);
}

const amounts = [
  ['Price', products[0]?.purchase_price],
  ['Deposit', link.get('customer_deposit')],
  ['To finance', link.get('loan_amount')],
];
for (const [label, amount] of amounts)
  if (amount) at('basket').append(element('dt', {}, label), element('dd', {}, pounds(amount)));

const first =
  products.find((one) => one.credit_product === link.get('credit_product')) ??
  (quote === null ? undefined : productOfSummary(quote)) ??
  products[0];
if (first !== undefined) {
  at('choice').append(...products.map((one) => option(one, one === first)));
  at('choice').hidden = false;
  choose(first);
}
if (quote === null)
  showFault(new Error('This offer is no longer open. Please go back to the sofa, and ask for another.'));
at('open').disabled = quote === null;

async function apply() {
  const chosen = new FormData(at('apply')).get('product');
  const order = { service_quote_id: quoteId, ...(chosen !== null && { credit_product: chosen }) };
  try {
    const { credit_application_id: id } = await post('/applications', order);
    location.assign(`/order?id=${id}`);
  } catch (error) {
    showFault(error);
  }
}

at('apply').addEventListener('submit', (event) => {
  event.preventDefault();
  void apply();
});
