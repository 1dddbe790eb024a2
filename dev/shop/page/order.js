import { at, element, follow, get, labelOf, parse, post, showFault, span, timeOf } from './common.js';

/** What a shopper reads in each state. */
const WORDS = {
  created: 'Your application is open.',
  submitted: 'The lender has your application.',
  referred: 'A person at the lender is reading your application.',
  accepted: 'Approved. Please sign the agreement.',
  action_required: 'The lender needs something more from you.',
  deposit_paid: 'Your deposit is paid.',
  signed: 'You have signed. The lender is making its last checks.',
  ready: 'All is ready, and your sofa is on its way.',
  activated: 'Your sofa has arrived.',
  paid_out: 'The lender has paid us. You pay month by month.',
  completed: 'Completed. Enjoy your sofa.',
  declined: 'Declined. The lender does not offer you this credit; you can pay another way.',
  cancelled: 'Cancelled. There is nothing to pay.',
  expired: 'The application has expired.',
  partially_refunded: 'Part of the price has been refunded.',
  refunded: 'Refunded. There is nothing more to pay.',
};
const WAY = [
  ['Applied', 'created'],
  ['Approved', 'accepted'],
  ['Signed', 'signed'],
  ['Delivered', 'activated'],
  ['Completed', 'completed'],
];
const ORDER = Object.keys(WORDS);
/** Off the way. */
const ASIDE = new Set(['declined', 'cancelled', 'expired', 'refunded', 'partially_refunded']);

const id = new URLSearchParams(location.search).get('id') ?? '';
/** By event id: as the API lists it, and as its webhook came. */
const events = new Map();
let choices = {};
let shownState;
let playing = false;

function learn({ credit_product: product, events: listed }) {
  at('about').textContent = product ?? '';
  at('application').textContent = `The webhooks of ${id}, the newest first.`;
  for (const event of listed) events.set(event.event_id, { ...events.get(event.event_id), ...event });
}

function receive(delivery) {
  const event = parse(delivery.body);
  if (event?.data?.credit_application_id !== id || !delivery.verified) return;
  const { status, occurred_at } = event.data;
  const { event_id, sequence } = event;
  events.set(event_id, { ...events.get(event_id), event_id, sequence, status, occurred_at, delivery });
}

function render() {
  const inOrder = [...events.values()].toSorted((a, b) => a.sequence - b.sequence);
  at('events').replaceChildren(...inOrder.toReversed().map(entry));
  // A shop believes what it has verified; it has kept nothing of the time before it was started.
  const state = (inOrder.findLast((one) => one.delivery) ?? inOrder.at(-1))?.status;
  if (state === undefined) return;
  if (at('state').textContent !== WORDS[state]) at('state').textContent = WORDS[state];
  at('state').className = `state ${state}`;
  const reached = Math.max(
    ...inOrder.filter((one) => !ASIDE.has(one.status)).map((one) => ORDER.indexOf(one.status)),
  );
  at('way').replaceChildren(
    ...WAY.map(([label, from]) => {
      const done = reached >= ORDER.indexOf(from);
      return element(
        'li',
        { className: done ? 'done' : '' },
        label,
        span('hidden', done ? ', done' : ', not yet'),
      );
    }),
  );
  offer(inOrder.at(-1).status);
}

function entry({ status, sequence, occurred_at: moment, delivery }) {
  const arrived = delivery
    ? span('verified', `Signature verified, answered ${delivery.answered ?? 'nothing'}`)
    : span('soft', 'Recorded; its webhook is on its way');
  return element(
    'li',
    {},
    element('strong', {}, labelOf(status)),
    span('soft', ` no. ${sequence}, `, timeOf(moment)),
    element('br'),
    arrived,
  );
}

/** What can be decided now. The focus stays here when the buttons change. */
function offer(state) {
  if (playing || state === shownState || choices[state] === undefined) return;
  shownState = state;
  const { decisions, steps } = choices[state];
  const inside = at('choices').contains(document.activeElement);
  const single = steps.map((step) => button(labelOf(step), [step], 'quiet'));
  const alone = element('details', {}, element('summary', {}, 'One event at a time'), buttons(single));
  const ended = element('p', {}, 'Nothing follows: this is the end of the application.');
  const decide = buttons(
    decisions.map(({ label, events: wanted }, nth) => button(label, wanted, nth === 0 ? '' : 'quiet')),
  );
  at('choices').replaceChildren(...(steps.length === 0 ? [ended] : [decide, alone]));
  if (inside) at('lender-title').focus();
}

const buttons = (all) => element('div', { className: 'buttons' }, ...all);

function button(label, wanted, className) {
  const node = element('button', { type: 'button', className }, label);
  node.addEventListener('click', () => void play(wanted));
  return node;
}

async function play(wanted) {
  if (playing) return;
  playing = true;
  at('choices').setAttribute('aria-busy', 'true');
  const fault = await post('/events', { credit_application_id: id, events: wanted })
    .then(learn)
    .catch((error) => error);
  playing = false;
  at('choices').setAttribute('aria-busy', 'false');
  showFault(fault);
  render();
}

try {
  const [setup, application] = await Promise.all([
    get('/setup'),
    get(`/application?id=${encodeURIComponent(id)}`),
  ]);
  ({ choices } = setup);
  learn(application);
  follow(({ deliveries, application: changed }) => {
    if (changed?.credit_application_id === id) learn(changed);
    for (const delivery of deliveries) receive(delivery);
    render();
  });
} catch (error) {
  showFault(error);
}
