import { constantFrom, nat, record, uniqueArray } from 'fast-check';
import {
  APPLICATION_STATES,
  contradicts,
  judgeStatus,
  mayFollow,
  missingSteps,
  type ApplicationState,
  byOccurrence,
  judgeEvent,
  nextToApply,
  type WaitingEvent,
} from '../../domain/application-states';
import { forAll } from './builders';

test.each(APPLICATION_STATES)('%s again is no news, but for another partial refund', (state) => {
  expect(judgeStatus(state, state, false)).toBe(state === 'partially_refunded' ? 'applied' : 'same_state');
});

test.each(['declined', 'cancelled', 'expired', 'refunded'] as const)('nothing follows %s', (state) => {
  const verdicts = APPLICATION_STATES.filter((to) => to !== state).map((to) => judgeStatus(state, to, false));
  expect(new Set(verdicts)).toEqual(new Set(['not_applied']));
});

test('what has come early waits, and what lies behind does not', () => {
  const verdicts = (from: ApplicationState, wanted: string) =>
    APPLICATION_STATES.filter((to) => judgeStatus(from, to, false) === wanted).join(' ');
  for (const state of ['created', 'signed', 'ready'] as const)
    expect(verdicts(state, 'waiting')).toBe('paid_out completed partially_refunded refunded');
  expect(verdicts('signed', 'not_applied')).toBe('created submitted referred accepted');
  expect(verdicts('ready', 'not_applied')).toBe(
    'created submitted referred accepted action_required deposit_paid signed declined',
  );
  expect(verdicts('paid_out', 'not_applied')).toContain('cancelled');
  expect(verdicts('completed', 'waiting')).toBe('');
});

test('a step back counts only when the lender dates it after what it takes back', () => {
  expect(judgeStatus('signed', 'action_required', false)).toBe('applied');
  expect(judgeStatus('signed', 'action_required', true)).toBe('not_applied');
  expect(judgeStatus('partially_refunded', 'completed', true)).toBe('not_applied');
  expect(judgeStatus('accepted', 'signed', true)).toBe('applied');
});

test('an event contradicts a state when it follows an end or steps back, and is no late report of a step before', () => {
  const contradicted = (told: string) => {
    const [from, to, minute] = told.split(/ then |@/) as [ApplicationState, ApplicationState, string];
    const standing = { state: from, stateOccurredAt: at(5), updatedAt: at(6) };
    return contradicts(standing, event(to, Number(minute), false));
  };
  for (const told of [
    'declined then accepted@6',
    'expired then accepted@6',
    'cancelled then expired@6',
    'paid_out then cancelled@6',
    // Nothing leads from an end to another state, so its date is no excuse.
    'paid_out then cancelled@4',
    'completed then cancelled@4',
    'refunded then partially_refunded@6',
    'signed then accepted@6',
    'paid_out then declined@4',
    // An application can expire before it is submitted: that is no step left out.
    'expired then submitted@6',
    'completed then created@6',
  ])
    expect([told, contradicted(told)]).toEqual([told, true]);
  for (const told of [
    // Late reports.
    'declined then accepted@4',
    'signed then accepted@4',
    'completed then paid_out@4',
    'expired then submitted@4',
    // A step that was left out, whenever the lender dates it.
    'accepted then submitted@6',
    'declined then submitted@6',
    // The same again, what is applied, and what waits.
    'declined then declined@6',
    'accepted then cancelled@6',
    'signed then action_required@6',
    'accepted then paid_out@6',
  ])
    expect([told, contradicted(told)]).toEqual([told, false]);
});

test('what is missing before a state is the inside of the shortest way forward', () => {
  const missing = (from: ApplicationState, to: ApplicationState) => missingSteps(from, to).join(' ');
  expect(missing('accepted', 'paid_out')).toBe('activated');
  expect(missing('created', 'completed')).toBe('activated paid_out');
  expect(missing('ready', 'refunded')).toBe('activated');
  expect(missing('activated', 'completed')).toBe('paid_out');
  expect(missing('accepted', 'signed')).toBe('');
  expect(missing('declined', 'paid_out')).toBe('');
});

interface Event extends WaitingEvent {
  readonly isOver: boolean;
}

const at = (minute: number) => new Date(Date.UTC(2026, 10, 21, 12, minute));
let eventNumber = 0;
const event = (status: ApplicationState, minute: number, isOver: boolean): Event => {
  eventNumber += 1;
  return { status, occurredAt: at(minute), eventNumber, isOver };
};

/** Applies what can be applied. @returns the way of the application, and what still waits. */
function settled(state: ApplicationState, events: readonly Event[]) {
  let standing = { state, stateOccurredAt: at(0), updatedAt: at(0) };
  let waiting = events.toSorted(byOccurrence);
  const way = [state];
  for (;;) {
    const next = nextToApply(standing, waiting, ({ isOver }) => isOver);
    if (next === null) break;
    standing = { state: next.status, stateOccurredAt: next.occurredAt, updatedAt: next.occurredAt };
    way.push(next.status);
    waiting = waiting.filter((one) => one !== next);
  }
  const left = waiting.filter((one) => judgeEvent(standing, one) === 'waiting');
  return { way: way.join(' '), left: left.map(({ status }) => status).join(' ') };
}

/** `paid_out@2!` is dated in the second minute, and its wait is over. */
const read = (told: string) =>
  told.split(' ').map((one) => {
    const [, status, minute] = /^(\w+)@(\d)/.exec(one) ?? [];
    return event(status as ApplicationState, Number(minute), one.endsWith('!'));
  });

test.each([
  ['nothing before its wait is over', 'paid_out@1', 'accepted', 'paid_out'],
  ['what is due', 'paid_out@1!', 'accepted paid_out'],
  ['what follows it by the table', 'completed@2 paid_out@1!', 'accepted paid_out completed'],
  ['what happened before it first', 'completed@2! paid_out@1', 'accepted paid_out completed'],
  ['what is dated alike by state', 'completed@1! paid_out@1!', 'accepted paid_out completed'],
  ['nothing behind what happened later', 'completed@1! paid_out@2!', 'accepted completed'],
  ['nothing after an end', 'refunded@1! completed@2!', 'accepted refunded'],
  ['no second one of the same state', 'paid_out@1! paid_out@2!', 'ready paid_out'],
  [
    'each partial refund',
    'partially_refunded@1! partially_refunded@2! completed@3!',
    'signed partially_refunded partially_refunded completed',
  ],
])('applies %s: of %s', (_what, told, way, left = '') => {
  const [from] = way.split(' ') as [ApplicationState];
  expect(settled(from, read(told))).toEqual({ way, left });
});

const events = uniqueArray(record({ status: constantFrom(...APPLICATION_STATES), minute: nat(20) }), {
  maxLength: 8,
  selector: ({ status, minute }) => `${status} ${minute}`,
});

test('from every state, whatever is told leaves nothing waiting once the wait is over, and every move is forward or by the table', () => {
  const place = (state: ApplicationState) => APPLICATION_STATES.indexOf(state);
  forAll(3_000, constantFrom(...APPLICATION_STATES), events, (from, told) => {
    const over = told.map(({ status, minute }) => event(status, minute, true));
    const { way, left } = settled(from, over);
    expect(left).toBe('');
    const states = way.split(' ') as ApplicationState[];
    for (const [before, to] of states.slice(1).entries()) {
      const source = states[before] ?? from;
      const isStep = mayFollow(source, to);
      expect(isStep || place(to) > place(source)).toBe(true);
      // A skip leaves something out, and a step does not.
      expect(missingSteps(source, to).length > 0).toBe(!isStep);
    }
  });
});
