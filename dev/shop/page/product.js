import { at, element, get, post, pounds, showFault } from './common.js';
import { exampleOf, figuresOf, needsDisclosure, productOfSummary, shownProducts } from './example.js';

/** After the last key: short enough to follow, long enough to spare the key's 100 calls a minute. */
const PAUSE_MS = 350;

const { merchants, disclosure } = await get('/setup');
const merchantId = new URLSearchParams(location.search).get('merchant') ?? merchants[0].id;
let products = [];
let named;
let timer;
/** The last answer that was asked for wins, however late an older one comes. */
let asked = 0;

async function quote() {
  const turn = ++asked;
  at('example').setAttribute('aria-busy', 'true');
  const basket = { merchant_id: merchantId, price: at('price').value, deposit: at('deposit').value };
  const [answer, fault] = await post('/quote', basket).then(
    (data) => [data],
    (error) => [undefined, error],
  );
  if (turn !== asked) return;
  showFault(fault);
  showOffer(answer);
  at('example').setAttribute('aria-busy', 'false');
}

/** Nothing of finance is shown when `display` is false, and after an error. */
function showOffer(answer) {
  const shown = answer?.summary.display === true;
  products = shown ? shownProducts(answer) : [];
  named = shown ? productOfSummary(answer) : undefined;
  // It is HTML, with the link exactly as it came.
  const summary = element('p', { innerHTML: shown ? answer.summary.finance_offer_summary : '' });
  at('offer').replaceChildren(summary, ...(named === undefined ? [] : [element('p', {}, exampleOf(named))]));
  at('disclosure').textContent = shown && needsDisclosure(answer) ? disclosure : '';
  const wanted = at('product').value || named?.credit_product;
  at('product').replaceChildren(
    ...products.map(({ credit_product: name }) => element('option', { value: name }, name)),
  );
  const gone = products.length > 0 && wanted && !products.some((one) => one.credit_product === wanted);
  if (wanted && !gone) at('product').value = wanted;
  at('choice').hidden = products.length === 0;
  const { corrected_deposit: raised, adjustment_reason: why } = answer?.deposit_adjustment ?? {};
  at('note').textContent = [
    ...(raised === undefined ? [] : [`Deposit: ${pounds(raised)}. ${why}`]),
    ...(gone ? [`${wanted} is not offered for this price and deposit.`] : []),
    ...(answer !== undefined && !shown ? ['Finance is not available for this price and deposit.'] : []),
  ].join(' ');
  showExample();
}

function showExample() {
  const chosen = products.find((one) => one.credit_product === at('product').value);
  // The example of the summary stands beside the price already.
  const words = chosen === undefined || chosen === named ? [] : [element('p', {}, exampleOf(chosen))];
  at('example').replaceChildren(...words, ...(chosen === undefined ? [] : [figuresOf(chosen)]));
}

function follow() {
  at('price-shown').textContent = pounds(at('price').value.trim());
  at('slider').max = Math.max(Math.floor(Number.parseFloat(at('price').value)) || 0, 1);
  // A price that is half typed may have moved it.
  at('slider').value = Number.parseFloat(at('deposit').value) || 0;
  clearTimeout(timer);
  timer = setTimeout(() => void quote(), PAUSE_MS);
}

at('price').addEventListener('input', follow);
at('deposit').addEventListener('input', follow);
at('slider').addEventListener('input', () => {
  at('deposit').value = `${at('slider').value}.00`;
  follow();
});
at('product').addEventListener('change', showExample);
at('basket').addEventListener('submit', (event) => event.preventDefault());
follow();
