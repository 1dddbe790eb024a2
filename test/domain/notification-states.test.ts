import {
  END_STATES,
  NOTIFICATION_STATES,
  NOTIFICATION_TRANSITIONS,
  OPEN_STATES,
  mayHappen,
  type NotificationEvent,
  type NotificationState,
  type Transition,
} from '../../domain/notification-states';

const TABLE: readonly (readonly [NotificationEvent, Transition])[] = Object.entries(
  NOTIFICATION_TRANSITIONS,
) as [NotificationEvent, Transition][];
const into = (states: readonly NotificationState[]) =>
  TABLE.filter(([, { to }]) => to !== null && states.includes(to)).map(
    ([event, one]) => [event, one] as const,
  );
/** Every field that an event changes, each once. */
const changed = ({ now = [], nowIfEmpty = [], clears = [], given = [] }: Transition) => [
  ...now,
  ...nowIfEmpty,
  ...clears,
  ...given,
];

test.each(TABLE)('%s changes each field in one way, and happens somewhere', (_event, transition) => {
  expect(new Set(changed(transition)).size).toBe(changed(transition).length);
  expect(transition.from.length).toBeGreaterThan(0);
});

/** In which states a field may have a value; in the others it is empty (the constraints of db/schema/notifications.ts). */
const MAY_HAVE = {
  taken_at: OPEN_STATES,
  reserved_month: OPEN_STATES,
  next_attempt_at: OPEN_STATES,
  paused_at: OPEN_STATES,
  held_at: ['held'],
} as const;

test.each(into(END_STATES))(
  '%s says when it ended, fills no slot and no quota, and is not held',
  (_event, one) => {
    expect(one.now).toContain('ended_at');
    for (const [field, states] of Object.entries(MAY_HAVE)) {
      const mayHave = one.from.some((state) => (states as readonly string[]).includes(state));
      if (mayHave) expect(one.clears).toContain(field);
    }
  },
);

test.each(into(['held']))('%s says since when, and leaves no slot and no quota', (_event, one) => {
  expect(one.now).toContain('held_at');
  expect(one.clears).toEqual(
    expect.arrayContaining(['taken_at', 'reserved_month', 'next_attempt_at', 'paused_at']),
  );
});

test.each(into(['failed', 'cancelled', 'held', 'expired']))('%s is given its reason', (_event, one) => {
  expect(one.given).toContain('end_reason');
  expect(one.closesAttempt).toBe(true);
});

test.each(TABLE.filter(([, { newGeneration }]) => newGeneration))(
  '%s begins as if nothing had been done, and is due',
  (_event, one) => {
    expect(one.to).toBe('pending');
    const gone = [
      'taken_at',
      'started_at',
      'first_attempt_at',
      'checked_at',
      'held_at',
      'ended_at',
      'end_reason',
      'next_attempt_at',
      'paused_at',
    ];
    expect(one.clears).toEqual(expect.arrayContaining(gone));
    expect(changed(one)).toContain('due_at');
  },
);

test.each(into([...END_STATES, 'held']).filter(([event]) => event !== 'expire'))(
  '%s lets the later events of its application go',
  (_event, one) => expect(one.laterEvents).toBe('due_now'),
);

test('an end is left only by a resend, or by a delivery that is reported late', () => {
  for (const state of END_STATES) {
    const leaving = TABLE.filter(([event, { to }]) => mayHappen(event, state) && to !== null && to !== state);
    expect(leaving.map(([event]) => event).toSorted()).toEqual(
      state === 'delivered' ? ['resend'] : ['deliver', 'resend'],
    );
  }
});

test('from every state an end can be reached', () => {
  const reach = (from: NotificationState, seen = new Set<NotificationState>()): Set<NotificationState> => {
    if (seen.has(from)) return seen;
    seen.add(from);
    for (const [event, { to }] of TABLE) if (to !== null && mayHappen(event, from)) reach(to, seen);
    return seen;
  };
  for (const state of NOTIFICATION_STATES)
    for (const end of ['delivered', 'failed'] as const) expect(reach(state)).toContain(end);
  for (const state of OPEN_STATES)
    expect([...reach(state)].toSorted()).toEqual([...NOTIFICATION_STATES].toSorted());
});
