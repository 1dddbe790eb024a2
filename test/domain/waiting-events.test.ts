import { assert, constantFrom, nat, property, record, uniqueArray } from 'fast-check';
import {
  APPLICATION_STATES,
  mayFollow,
  missingSteps,
  type ApplicationState,
  byOccurrence,
  judgeEvent,
  nextToApply,
  type WaitingEvent,
} from '../../domain/application-states';

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

test.each<[string, ApplicationState, Event[], string, string]>([
  ['nothing before its wait is over', 'accepted', [event('paid_out', 1, false)], 'accepted', 'paid_out'],
  ['what is due', 'accepted', [event('paid_out', 1, true)], 'accepted paid_out', ''],
  [
    'what follows it by the table',
    'accepted',
    [event('completed', 2, false), event('paid_out', 1, true)],
    'accepted paid_out completed',
    '',
  ],
  [
    'what happened before it first',
    'accepted',
    [event('completed', 2, true), event('paid_out', 1, false)],
    'accepted paid_out completed',
    '',
  ],
  [
    'what is dated alike in the order of the states',
    'accepted',
    [event('completed', 1, true), event('paid_out', 1, true)],
    'accepted paid_out completed',
    '',
  ],
  [
    'nothing behind what happened later',
    'accepted',
    [event('completed', 1, true), event('paid_out', 2, true)],
    'accepted completed',
    '',
  ],
  [
    'nothing after an end',
    'accepted',
    [event('refunded', 1, true), event('completed', 2, true)],
    'accepted refunded',
    '',
  ],
  [
    'each partial refund',
    'signed',
    [event('partially_refunded', 1, true), event('partially_refunded', 2, true), event('completed', 3, true)],
    'signed partially_refunded partially_refunded completed',
    '',
  ],
  [
    'no second one of the same state',
    'ready',
    [event('paid_out', 1, true), event('paid_out', 2, true)],
    'ready paid_out',
    '',
  ],
])('applies %s', (_what, from, events, way, left) => {
  expect(settled(from, events)).toEqual({ way, left });
});

const events = uniqueArray(record({ status: constantFrom(...APPLICATION_STATES), minute: nat(20) }), {
  maxLength: 8,
  selector: ({ status, minute }) => `${status} ${minute}`,
});

test('from every state, whatever is told leaves nothing waiting once the wait is over, and every move is forward or by the table', () => {
  const place = (state: ApplicationState) => APPLICATION_STATES.indexOf(state);
  assert(
    property(constantFrom(...APPLICATION_STATES), events, (from, told) => {
      const { way, left } = settled(
        from,
        told.map(({ status, minute }) => event(status, minute, true)),
      );
      expect(left).toBe('');
      const states = way.split(' ') as ApplicationState[];
      for (const [before, to] of states.slice(1).entries()) {
        const source = states[before] ?? from;
        const isStep = mayFollow(source, to);
        expect(isStep || place(to) > place(source)).toBe(true);
        // A skip leaves something out, and a step does not.
        expect(missingSteps(source, to).length > 0).toBe(!isStep);
      }
    }),
    { numRuns: 3_000 },
  );
});
