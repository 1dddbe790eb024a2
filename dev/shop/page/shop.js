import { element, renderOffer } from './offer.js';

const at = (id) => document.getElementById(id);
const get = async (path) => (await fetch(path)).json();
const post = async (path, body) =>
  (
    await fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  ).json();

/** The last answer that was asked for wins, however late an older one comes. */
let asked = 0;

async function showFinance(merchantId) {
  const turn = ++asked;
  const { price, deposit } = Object.fromEntries(new FormData(at('basket')));
  at('offer').setAttribute('aria-busy', 'true');
  const exchange = await post('/quote', { merchant_id: merchantId, price, deposit }).catch((error) => ({
    error: String(error),
  }));
  if (turn !== asked) return;
  at('deposit-fault').textContent = exchange.fault ?? '';
  const data = exchange.answer?.data;
  at('offer').replaceChildren(...(data === undefined ? [] : renderOffer(data, exchange.disclosure)));
  at('offer').setAttribute('aria-busy', 'false');
  at('exchange').textContent = JSON.stringify(exchange, null, 2);
}

async function told(button, path, working) {
  button.disabled = true;
  at('told').textContent = working;
  const { said } = await post(path, {}).catch((error) => ({ said: String(error) }));
  at('told').textContent = said;
  button.disabled = false;
}

function inboxEntry({ receivedAt, eventType, verified, why, answered, body }) {
  const entry = element('li', {});
  const verdict = verified ? 'signature verified' : `not verified: ${why}`;
  entry.append(
    element('strong', { textContent: eventType ?? 'unknown event' }),
    ` at ${receivedAt.slice(11, 19)}, `,
    element('span', { className: verified ? 'verified' : 'refused', textContent: verdict }),
    `, answered ${answered ?? 'nothing'}`,
  );
  const { sequence, data } = parse(body) ?? {};
  if (data) {
    const { credit_application_id: id, merchant_reference: reference, lender, status } = data;
    const about = [`no. ${sequence}`, status, lender, reference, id].filter(Boolean).join(' · ');
    entry.append(element('br', {}), element('code', { textContent: about }));
  }
  return entry;
}

function parse(body) {
  try {
    return JSON.parse(body);
  } catch {
    return {};
  }
}

let newest = '';
async function refreshInbox() {
  try {
    const deliveries = await get('/inbox');
    const mark = JSON.stringify([deliveries.length, deliveries[0]?.receivedAt, deliveries[0]?.eventId]);
    if (mark !== newest) at('inbox').replaceChildren(...deliveries.map(inboxEntry));
    newest = mark;
    at('empty').hidden = deliveries.length > 0;
  } catch {
    // The stack is stopping, or starts again: the next look will tell.
  }
  setTimeout(refreshInbox, 1_000);
}

async function start() {
  const { merchants, situations, partner_page: partnerPage } = await get('/merchants');
  at('partner-page').append(
    element('a', {
      href: partnerPage,
      textContent: 'What was sent, and what to do when the receiver was down',
    }),
  );
  at('merchant').append(
    ...merchants.map(({ id, shows }) => element('option', { value: id, textContent: `${id}: ${shows}` })),
  );
  at('situations').append(
    ...situations.map(({ id, shows }) => {
      const button = element('button', { type: 'button', textContent: `${id}: ${shows.split(':')[0]}` });
      button.addEventListener('click', () => void showFinance(id));
      return button;
    }),
  );
  at('basket').addEventListener('submit', (event) => {
    event.preventDefault();
    void showFinance(at('merchant').value);
  });
  at('send-test').addEventListener('click', (event) => {
    void told(event.currentTarget, '/test-notification', 'Sending a test notification …');
  });
  at('send-demo').addEventListener('click', (event) => {
    void told(event.currentTarget, '/demo-application', 'An application takes its way; watch the inbox …');
  });
  void refreshInbox();
  await showFinance(at('merchant').value);
}

void start();
