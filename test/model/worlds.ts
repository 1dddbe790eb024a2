import type { Terms } from './rows';
import type { Order, WorldSetup } from './world';

const TERMS: Terms = { lease: 1, orderWait: 1, checkAfter: 1, ladder: [0, 1], testLadder: [0, 1] };
const ALL: readonly Order[] = ['pause', 'retry_now', 'cancel', 'resend', 'terminate', 'partner', 'endpoint'];
const NONE = { faults: 0, may: [], orders: 0, order: [] } as const;
const ANSWERS = ['delivered', 'failed'] as const;

/** Small worlds, each with some of what may happen. Together they take less than three minutes; nightly, each has a fault more. */
export const WORLDS: readonly WorldSetup[] = [
  {
    ...NONE,
    name: 'one event, two crashes',
    events: [{}],
    terms: { ...TERMS, ladder: [0, 1, 2] },
    answers: [...ANSWERS, 'gone'],
    faults: 2,
    may: ['dies', 'unanswered', 'lost', 'wake'],
  },
  {
    ...NONE,
    name: 'one event, an order and a fault',
    events: [{}],
    terms: TERMS,
    answers: ANSWERS,
    faults: 1,
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
  },
  {
    ...NONE,
    name: 'one event, two orders',
    events: [{}],
    terms: TERMS,
    answers: ANSWERS,
    orders: 2,
    order: ALL,
  },
  {
    ...NONE,
    name: 'two events of one application, a fault',
    events: [{ application: 'a' }, { application: 'a' }],
    terms: TERMS,
    answers: ANSWERS,
    faults: 1,
    may: ['dies'],
  },
  {
    ...NONE,
    name: 'two events of one application, an endpoint that goes and comes',
    events: [{ application: 'a' }, { application: 'a' }],
    terms: TERMS,
    answers: ANSWERS,
    orders: 1,
    order: ['endpoint'],
  },
  {
    ...NONE,
    name: 'two tests, one unit of the quota, two months',
    events: [{ test: true }, { test: true }],
    terms: TERMS,
    answers: ANSWERS,
    faults: 1,
    may: ['dies', 'late', 'freezes', 'month'],
    orders: 1,
    order: ['endpoint', 'resend'],
    quota: 1,
  },
  {
    ...NONE,
    name: 'two events, one slot',
    events: [{}, {}],
    terms: TERMS,
    answers: ANSWERS,
    slots: 1,
  },
];
