import { at, element, follow, get, parse, post, showFault, span, timeOf } from './common.js';

const BEHAVIOURS = {
  ok: () => 'answers 200 to what it can verify, 401 to the rest',
  hang: () => 'takes everything and never answers',
  status: ({ status }) => `answers ${status} to everything`,
  receiver: ({ receiver }) => `is one of those outside (${receiver.replaceAll('_', ' ')})`,
  'fail-times': ({ status, times }) => `answers ${status} ${times} more times, then 200`,
};
/** Others are under way, or a test: the API says so to who asks nevertheless. */
const RESENDABLE = new Set(['delivered', 'failed', 'held', 'expired']);

const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/** A list whose entries stay as they are, and open, while new ones come in front of them. */
function prepend(list, items, entry) {
  const known = Number(list.dataset.count ?? 0);
  // After a lost connection the list begins again.
  if (items.length < known || (known > 0 && items.length === 200)) list.replaceChildren();
  const added = items.slice(0, items.length - list.childElementCount);
  list.prepend(...added.map(entry));
  list.dataset.count = items.length;
}

function details(...parts) {
  const shown = parts.filter(([, value]) => value !== undefined && value !== '');
  return element(
    'details',
    {},
    element('summary', {}, shown.map(([name]) => name).join(', ')),
    ...shown.map(([name, value]) => element('pre', { tabIndex: 0, 'aria-label': name }, text(value))),
  );
}

function callEntry({ at: moment, method, path, status, tookMs, request, answer, requestId, callsLeft }) {
  return element(
    'li',
    {},
    element('code', {}, `${method} ${path}`),
    element('br'),
    span(status < 400 ? 'verified' : 'refused', String(status)),
    span('soft', ` in ${tookMs} ms, `, timeOf(moment), ` · ${callsLeft ?? 'no'} calls left`),
    details(['Request', request], ['Answer', answer], ['X-Request-Id', requestId]),
  );
}

function deliveryEntry({ receivedAt, eventType, eventId, verified, why, answered, headers, body }) {
  const { sequence, data } = parse(body) ?? {};
  const about = [sequence && `no. ${sequence}`, data?.credit_application_id, eventId]
    .filter(Boolean)
    .join(' · ');
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return element(
    'li',
    {},
    element('strong', {}, eventType ?? 'unknown event'),
    element('br'),
    verified ? span('verified', 'Signature verified') : span('refused', `Not verified: ${why}`),
    span('soft', `, answered ${answered ?? 'nothing'}, `, timeOf(receivedAt), ` · ${about}`),
    details(['Headers', lines.join('\n')], ['Body', parse(body) ?? body]),
  );
}

function logEntry(item) {
  const { last_attempt: last, next_attempt_at: next, reason, sequence, status, event_id: eventId } = item;
  const attempt =
    last &&
    `attempt ${item.attempts} ${last.http_status === null ? (last.failure ?? last.outcome) : `was answered ${last.http_status}`}`;
  const about = [sequence && `no. ${sequence}`, attempt, next && `next at ${next}`, eventId];
  const entry = element(
    'li',
    {},
    element('strong', {}, item.event_type),
    ` ${status}${reason === null ? '' : `: ${reason}`}`,
    element('br'),
    span('soft', timeOf(item.created_at), ` · ${about.filter(Boolean).join(' · ')}`),
  );
  if (sequence === null || !RESENDABLE.has(status)) return entry;
  const again = element(
    'button',
    { type: 'button', className: 'quiet', 'aria-label': `Send again: ${eventId}` },
    'Send again',
  );
  again.addEventListener('click', () => {
    const words = `${eventId} is sent again, with the same event id.`;
    void order('sent', '/resend', { id: item.notification_id }, () => words);
  });
  entry.append(again);
  return entry;
}

/** @param where the node for the outcome in words. */
async function order(where, path, body, words) {
  try {
    const answer = await post(path, body);
    showFault();
    at(where).textContent = words(answer);
  } catch (error) {
    showFault(error);
  }
}

async function readLog() {
  try {
    const items = await get('/notifications');
    at('log').replaceChildren(...items.map(logEntry));
    if (items.length === 0) at('log').replaceChildren(element('li', {}, 'None yet.'));
  } catch (error) {
    showFault(error);
  }
}

at('send-test').addEventListener('click', () => {
  void order('told', '/test-notification', {}, ({ event_id: id, status }) => `${id}: ${status}.`);
});
at('read').addEventListener('click', () => void readLog());
at('down').addEventListener('click', () => void post('/story'));
for (const button of document.querySelectorAll('[data-mode]'))
  button.addEventListener('click', () => void post('/behaviour', { mode: button.dataset.mode }));

let newest;
let timer;
/** After a delivery, when its outcome is recorded; what somebody uses stays as it is. */
function readLogSoon({ receivedAt } = {}) {
  if (receivedAt === newest) return;
  newest = receivedAt;
  clearTimeout(timer);
  timer = setTimeout(() => at('log').matches(':focus-within') || void readLog(), 1_000);
}

follow(({ calls, deliveries, behaviour, story }) => {
  readLogSoon(deliveries[0]);
  prepend(at('calls'), calls, callEntry);
  prepend(at('deliveries'), deliveries, deliveryEntry);
  at('behaviour').textContent = BEHAVIOURS[behaviour.mode](behaviour);
  at('down').textContent = story.running ? 'Please wait …' : 'My receiver was down';
  const lines = story.lines.slice(at('story').childElementCount);
  if (story.lines.length < at('story').childElementCount) at('story').replaceChildren();
  at('story').append(...lines.map((line) => element('li', {}, line)));
});
void readLog();

/** Why the list of webhooks stays empty, if it does. */
async function readEndpoint() {
  const { url } = await get('/endpoint');
  if (url === `${location.origin}/webhooks`) return;
  const where =
    url === null ? 'No receiver is registered' : `Webhooks go to ${url}, the receiver that is registered`;
  at('elsewhere').textContent = `${where}: none arrives here.`;
}
void readEndpoint().catch(showFault);
at('receiver').addEventListener('change', ({ target: { value } }) => {
  if (value !== '') void post('/behaviour', { mode: 'receiver', receiver: value });
});
const { merchants, receivers } = await get('/setup');
at('receiver').append(...receivers.map(({ name, does }) => element('option', { value: name }, does)));
at('merchants').append(
  ...merchants.map(({ id, shows }) => {
    const link = element('a', { href: `/?merchant=${encodeURIComponent(id)}` }, id);
    return element('li', {}, link, `: ${shows}`);
  }),
);
