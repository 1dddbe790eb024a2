import {
  DELIVERY_CHANGES,
  DELIVERY_STATES,
  END_STATES,
  ENDS,
  NOTIFICATION_STATES,
  type DeliveryChange,
  type DeliveryEvent,
} from '../../domain/notification-states';

const CHANGES = Object.entries(DELIVERY_CHANGES) as [DeliveryEvent, DeliveryChange][];
test('a generation begins with a release, a restart, a pause of the partner, rounds without a slot or a resend only', () => {
  const beginning = CHANGES.filter(([, change]) => change.newGeneration).map(([event]) => event);
  expect(beginning.toSorted()).toEqual(['park', 'release', 'requeue', 'restart']);
});

test('what has ended is changed by a delivery that is reported late, and by nothing else', () => {
  const happening = (all: readonly { readonly from: readonly string[] }[], state: string) =>
    all.filter(({ from }) => from.includes(state));
  for (const state of END_STATES) {
    expect(happening(Object.values(ENDS), state)).toEqual([ENDS.delivered]);
    expect(happening(Object.values(DELIVERY_CHANGES), state)).toEqual([]);
  }
});

test('from every state under way an end can be reached', () => {
  const reach = (from: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(from)) return seen;
    seen.add(from);
    for (const [, { from: states, to }] of CHANGES)
      if (to !== null && (states as readonly string[]).includes(from)) reach(to, seen);
    for (const { from: states, end } of Object.values(ENDS))
      if ((states as readonly string[]).includes(from)) seen.add(end);
    return seen;
  };
  for (const state of DELIVERY_STATES)
    expect([...reach(state)].toSorted()).toEqual([...NOTIFICATION_STATES].toSorted());
});
