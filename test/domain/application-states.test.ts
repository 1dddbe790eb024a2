import {
  APPLICATION_STATES,
  judgeStatus,
  mayFollow,
  missingSteps,
  TRANSITIONS,
  type ApplicationState,
} from '../../domain/application-states';

/** The table of transitions, written out once more. */
const DESIGNED = `
| created | submitted, cancelled, expired |
| submitted | referred, accepted, declined, cancelled, expired |
| referred | accepted, declined, action_required, cancelled, expired |
| accepted | action_required, deposit_paid, signed, declined, cancelled, expired |
| action_required | referred, accepted, deposit_paid, signed, declined, cancelled, expired |
| deposit_paid | action_required, signed, declined, cancelled, expired |
| signed | action_required, deposit_paid, ready, declined, cancelled, expired |
| ready | activated, cancelled, expired |
| activated | paid_out, cancelled, partially_refunded, refunded |
| paid_out | completed, partially_refunded, refunded |
| completed | partially_refunded, refunded |
| partially_refunded | partially_refunded, refunded, completed |`;

const designed = new Map(
  [...DESIGNED.matchAll(/\| (\w+) \| (.*) \|/g)].map(([, from, to = '']) => [from, to.split(', ')]),
);
const ON_THE_WAY =
  'created submitted referred accepted action_required deposit_paid signed ready activated'.split(' ');
const isSkip = (from: string, to: string) =>
  ON_THE_WAY.slice(0, 7).includes(from) &&
  (to === 'declined' || ON_THE_WAY.indexOf(to) > ON_THE_WAY.indexOf(from));

const pairs = APPLICATION_STATES.flatMap((from) => APPLICATION_STATES.map((to) => [from, to] as const));
const steps = pairs.filter(([from, to]) => designed.get(from)?.includes(to));
const skips = pairs.filter(([from, to]) => isSkip(from, to) && !designed.get(from)?.includes(to));
const others = pairs.filter((pair) => !steps.includes(pair) && !skips.includes(pair));

test('the pairs are 52 steps, 24 skips and the rest of 256', () => {
  expect([steps.length, skips.length, others.length]).toEqual([52, 24, 180]);
  expect(Object.values(TRANSITIONS).flat()).toHaveLength(steps.length);
});

test.each(steps)('%s may be followed by %s, step by step', (from, to) => {
  expect(mayFollow(from, to)).toBe(true);
  expect(judgeStatus(from, to, false)).toBe('applied');
});

test.each(skips)('%s may be followed by %s, steps left out', (from, to) => {
  expect(mayFollow(from, to)).toBe(true);
  expect(judgeStatus(from, to, true)).toBe('applied');
});

test.each(others)('%s is not followed by %s', (from, to) => {
  expect(mayFollow(from, to)).toBe(false);
  expect(judgeStatus(from, to, false)).not.toBe('applied');
});

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
  expect(verdicts('created', 'waiting')).toBe('paid_out completed partially_refunded refunded');
  expect(verdicts('signed', 'waiting')).toBe('paid_out completed partially_refunded refunded');
  expect(verdicts('signed', 'not_applied')).toBe('created submitted referred accepted');
  expect(verdicts('ready', 'waiting')).toBe('paid_out completed partially_refunded refunded');
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

test('what is missing before a state is the inside of the shortest way forward', () => {
  const missing = (from: ApplicationState, to: ApplicationState) => missingSteps(from, to).join(' ');
  expect(missing('accepted', 'paid_out')).toBe('activated');
  expect(missing('created', 'completed')).toBe('activated paid_out');
  expect(missing('ready', 'refunded')).toBe('activated');
  expect(missing('activated', 'completed')).toBe('paid_out');
  expect(missing('accepted', 'signed')).toBe('');
  expect(missing('declined', 'paid_out')).toBe('');
});
