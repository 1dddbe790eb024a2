import type { Terms } from '../rows';
import type { Order, WorldSetup } from './turn';

const TERMS: Terms = { lease: 1, orderWait: 1, checkAfter: 1, ladder: [0, 1] };
const ALL: readonly Order[] = ['pause', 'retry_now', 'cancel', 'resend', 'terminate', 'partner', 'endpoint'];
const TWO_OF_ONE = [{ application: 'a' }, { application: 'a' }];

/** One event, whose receiver answers 2xx or not, with nothing that goes wrong but what is said. */
export const world = (name: string, has: Partial<WorldSetup>): WorldSetup => ({
  name,
  events: [{}],
  terms: TERMS,
  answers: ['delivered', 'failed'],
  faults: 0,
  may: [],
  orders: 0,
  order: [],
  ...has,
});

/** Small worlds, each with some of what may happen. Together they take less than three minutes. */
export const WORLDS: readonly WorldSetup[] = [
  world('one event, two crashes', {
    terms: { ...TERMS, ladder: [0, 1, 2] },
    answers: ['delivered', 'failed', 'gone'],
    faults: 2,
    may: ['dies', 'unanswered', 'lost', 'wake'],
  }),
  world('one event, an order and a fault', {
    faults: 1,
    // Every fault but a month.
    may: [
      'dies',
      'unanswered',
      'late',
      'freezes',
      'slow',
      'wake',
      'lost',
      'clock',
      'busy',
      'ours',
      'expires',
    ],
    orders: 1,
    order: ALL,
  }),
  world('one event, two orders', { orders: 2, order: ALL }),
  world('two events of one application, a fault', { events: TWO_OF_ONE, faults: 1, may: ['dies'] }),
  world('two events of one application, an endpoint that goes and comes', {
    events: TWO_OF_ONE,
    orders: 1,
    order: ['endpoint', 'recover'],
  }),
  world('two tests, one unit of the quota, two months', {
    events: [{ test: true }, { test: true }],
    faults: 1,
    may: ['dies', 'late', 'freezes', 'month'],
    orders: 1,
    order: ['endpoint', 'resend'],
    quota: 1,
  }),
  world('two events, one slot', { events: [{}, {}], slots: 1 }),
];
