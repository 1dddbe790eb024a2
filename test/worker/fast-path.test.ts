import {
  createEndpointSpeed,
  createFastPath,
  type AttemptPace,
  type EndpointHistory,
} from '../../worker/fast-path';

const OF = { partnerId: 'P100001', environment: 'live' } as const;
const OTHER = { partnerId: 'P100002', environment: 'live' } as const;
const FAST: AttemptPace = { outcome: 'delivered', durationMs: 499 };
const SLOW: AttemptPace = { outcome: 'delivered', durationMs: 500 };
const times = (count: number, pace = FAST) => Array.from({ length: count }, () => pace);
const settled = () => new Promise((resolve) => setImmediate(resolve));

/** What the database remembers. */
function speedOf(history: EndpointHistory | null = null) {
  const errors: unknown[] = [];
  const speed = createEndpointSpeed({
    recall: async () => history,
    onError: (error) => errors.push(error),
  });
  return {
    ...speed,
    observe10: (endpointId: string) =>
      times(10).forEach((pace) => speed.observe({ ...OF, endpointId }, pace)),
  };
}

describe('how fast an endpoint is', () => {
  test('it is fast from its tenth fast attempt in a row on', () => {
    const speed = speedOf();
    for (const pace of times(9)) speed.observe({ ...OF, endpointId: 'whe_1' }, pace);
    expect(speed.fast(OF)).toBeNull();
    speed.observe({ ...OF, endpointId: 'whe_1' }, FAST);
    expect(speed.fast(OF)).toBe('whe_1');
    expect(speed.fast(OTHER)).toBeNull();
    expect(speed.fast({ ...OF, environment: 'sandbox' })).toBeNull();
  });

  test('an attempt that failed ends that, until the tenth fast one', () => {
    const speed = speedOf();
    speed.observe10('whe_1');
    speed.observe({ ...OF, endpointId: 'whe_1' }, { outcome: 'failed', durationMs: 3 });
    for (const again of times(9)) speed.observe({ ...OF, endpointId: 'whe_1' }, again);
    expect(speed.fast(OF)).toBeNull();
    speed.observe({ ...OF, endpointId: 'whe_1' }, FAST);
    expect(speed.fast(OF)).toBe('whe_1');
  });

  test('attempts that took 500 ms end that, until the third fast one in a row', () => {
    const speed = speedOf();
    speed.observe10('whe_1');
    for (const pace of [SLOW, SLOW, FAST, FAST, SLOW, FAST, FAST]) {
      speed.observe({ ...OF, endpointId: 'whe_1' }, pace);
      expect(speed.fast(OF)).toBeNull();
    }
    speed.observe({ ...OF, endpointId: 'whe_1' }, FAST);
    expect(speed.fast(OF)).toBe('whe_1');
  });

  test('an endpoint in the place of another has to prove itself anew', () => {
    const speed = speedOf();
    speed.observe10('whe_1');
    speed.observe({ ...OF, endpointId: 'whe_2' }, FAST);
    expect(speed.fast(OF)).toBeNull();
  });

  test.each<[string, readonly AttemptPace[], string | null]>([
    ['ten fast attempts', times(10), 'whe_1'],
    ['ten, and a slow one before them', [...times(10), { outcome: 'failed', durationMs: 9 }], 'whe_1'],
    ['nine', times(9), null],
    [
      'a newest one that nobody knows the end of',
      [{ outcome: 'unknown', durationMs: null }, ...times(10)],
      null,
    ],
  ])('a new process recalls %s', async (_what, attempts, endpointId) => {
    const speed = speedOf({ endpointId: 'whe_1', attempts });
    expect(speed.fast(OF)).toBeNull();
    await settled();
    expect(speed.fast(OF)).toBe(endpointId);
  });

  test.each([
    ['failed meanwhile', 'whe_1', 'failed'],
    ['was replaced meanwhile', 'whe_2', 'delivered'],
  ] as const)(
    'what is recalled of an endpoint that %s does not count',
    async (_what, endpointId, outcome) => {
      const speed = speedOf({ endpointId: 'whe_1', attempts: times(10) });
      expect(speed.fast(OF)).toBeNull();
      speed.observe({ ...OF, endpointId }, { outcome, durationMs: 5 });
      await settled();
      expect(speed.fast(OF)).toBeNull();
    },
  );

  test('a database that cannot be asked is asked again', async () => {
    let asked = 0;
    const errors: unknown[] = [];
    const speed = createEndpointSpeed({
      recall: async () => {
        asked += 1;
        if (asked === 1) throw new Error('away');
        return { endpointId: 'whe_1', attempts: times(10) };
      },
      onError: (error) => errors.push(error),
    });
    speed.fast(OF);
    await settled();
    expect(errors).toHaveLength(1);
    speed.fast(OF);
    await settled();
    expect(speed.fast(OF)).toBe('whe_1');
  });
});

describe('slots on the fast path', () => {
  function queue(slots = 2) {
    const clock = { now: 0 };
    const fast = new Set(['P100001', 'P100002']);
    const made = createFastPath({
      speed: {
        fast: ({ partnerId }) => (fast.has(partnerId) ? `whe_${partnerId}` : null),
      },
      slots,
      monotonicMs: () => clock.now,
    });
    const reserve = (notificationId: string, of: typeof OF | typeof OTHER = OF) =>
      made.reserve({ ...of, notificationId });
    return { ...made, reserve, clock, fast };
  }

  test('there are no more than given, reserved and taken together', () => {
    const { reserve, enter } = queue();
    expect([reserve('a'), reserve('b'), reserve('c')]).toEqual(['fast', 'fast', 'no_slot']);
    const place = enter('a');
    expect(place?.endpointId).toBe('whe_P100001');
    expect(reserve('c')).toBe('no_slot');
    place?.leave();
    expect(reserve('c')).toBe('fast');
  });

  test('nobody enters without a reservation, nor twice with one', () => {
    const { reserve, enter, cancel } = queue();
    expect(enter('a')).toBeNull();
    reserve('a');
    expect(enter('a')).not.toBeNull();
    expect(enter('a')).toBeNull();
    reserve('b');
    cancel('b');
    expect(enter('b')).toBeNull();
  });

  test('a reservation that nobody comes for ends by itself', () => {
    const { reserve, enter, clock } = queue(1);
    reserve('a');
    clock.now = 4_999;
    expect(reserve('b')).toBe('no_slot');
    clock.now = 5_000;
    expect(reserve('b')).toBe('fast');
    expect(enter('a')).toBeNull();
  });

  test('an endpoint that is not fast gets none', () => {
    const { reserve, fast } = queue();
    fast.delete('P100001');
    expect(reserve('a')).toBe('endpoint_not_fast');
    expect(reserve('b', OTHER)).toBe('fast');
  });

  test('an endpoint that lets one attempt wait gets no more, before that has ended', () => {
    const { reserve, enter, clock } = queue(9);
    reserve('a');
    const place = enter('a');
    clock.now = 1_001;
    expect(reserve('b')).toBe('endpoint_not_fast');
    expect(reserve('c', OTHER)).toBe('fast');
    place?.leave();
    expect(reserve('b')).toBe('fast');
  });
});
