import { deliveryNow, type DeliveryFacts } from '../../domain/delivery-now';

const at = (time: string) => new Date(`2026-11-22T${time}Z`);
const NOW = at('12:00:00');
const FACTS: DeliveryFacts = {
  state: 'queued',
  endReason: null,
  dueAt: at('11:59:00'),
  takenAt: null,
  nextAttemptAt: null,
  pausedAt: null,
  heldAt: null,
  endedAt: null,
  attemptBeganAt: null,
  pausedBy: null,
  partnerPaused: null,
  earlier: null,
  slotsFull: false,
  testsFull: false,
  startsFail: false,
  endpointActive: true,
  now: NOW,
};
const retrying = { state: 'started', nextAttemptAt: at('12:05:00') } as const;
const paused = { pausedAt: at('11:00:00'), pausedBy: 'jane' } as const;
const behind = { earlier: 'ntf_1' } as const;
const taken = (time: string) => ({ state: 'started', takenAt: at(time) }) as const;

/** What a delivery does, since a time of this day, or until one. */
const since = (doing: string, time: string, more = {}) => ({ doing, since: at(time), ...more });
const until = (doing: string, time: string | null, more = {}) => ({
  doing,
  until: time && at(time),
  ...more,
});
const earlier = { notificationId: 'ntf_1' };

test.each<[string, Partial<DeliveryFacts>, unknown]>([
  [
    'ended',
    { state: 'failed', endReason: 'exhausted', endedAt: at('10:00:00') },
    since('ended', '10:00:00', { state: 'failed', reason: 'exhausted' }),
  ],
  [
    'held',
    { state: 'held', endReason: 'webhook_not_registered', heldAt: at('09:00:00') },
    since('held', '09:00:00', { reason: 'webhook_not_registered' }),
  ],
  ['paused before its next attempt', { ...retrying, ...paused }, since('paused', '11:00:00', { by: 'jane' })],
  [
    'paused, with an attempt by retry-now',
    { ...retrying, ...paused, attemptBeganAt: at('11:59:58') },
    since('sending', '11:59:58'),
  ],
  [
    'paused, after its planned attempt passed',
    { ...retrying, ...paused, nextAttemptAt: at('11:30:00') },
    since('paused', '11:00:00', { by: 'jane' }),
  ],
  [
    'paused with its partner, whatever else it waits for',
    { ...behind, partnerPaused: { since: at('10:30:00'), by: 'joe' } },
    since('partner_paused', '10:30:00', { by: 'joe' }),
  ],
  [
    'being sent while its partner is paused',
    { ...retrying, attemptBeganAt: at('11:59:58'), partnerPaused: { since: at('11:59:59'), by: 'joe' } },
    since('sending', '11:59:58'),
  ],
  ['between attempts', retrying, until('waiting_for_attempt', '12:05:00')],
  [
    'an attempt that is just due',
    { ...retrying, nextAttemptAt: at('11:59:55') },
    until('waiting_for_attempt', '11:59:55'),
  ],
  [
    'an attempt that nobody makes',
    { ...retrying, nextAttemptAt: at('11:50:00') },
    since('attempt_overdue', '11:50:00'),
  ],
  [
    'the first attempt',
    { ...taken('11:59:59'), attemptBeganAt: at('11:59:59') },
    since('sending', '11:59:59'),
  ],
  ['taken, its workflow started', taken('11:59:59'), since('starting', '11:59:59')],
  [
    'taken, its workflow not started yet',
    { takenAt: at('11:59:59'), dueAt: at('12:00:59') },
    since('starting', '11:59:59'),
  ],
  [
    'taken again, after its workflow could not be started',
    { takenAt: at('11:59:59'), dueAt: at('12:00:09'), startsFail: true },
    until('put_off', null),
  ],
  [
    'taken, and nothing came of it',
    { takenAt: at('11:59:55'), dueAt: at('12:00:05') },
    since('attempt_overdue', '11:59:55'),
  ],
  ['its workflow started, and no attempt began', taken('11:59:50'), since('attempt_overdue', '11:59:50')],
  [
    'taken by a worker that died',
    { takenAt: at('11:50:00'), dueAt: at('11:51:00') },
    since('due', '11:51:00'),
  ],
  ['no endpoint', { endpointActive: false, ...behind }, { doing: 'without_endpoint' }],
  ['behind an earlier event', behind, until('waiting_for_earlier', null, earlier)],
  [
    'behind an earlier event that failed once',
    { ...behind, dueAt: at('12:00:30') },
    until('waiting_for_earlier', '12:00:30', earlier),
  ],
  [
    'behind an earlier event, and slots are full',
    { ...behind, slotsFull: true },
    until('waiting_for_earlier', null, earlier),
  ],
  ['given back', { dueAt: at('12:00:05') }, until('put_off', '12:00:05')],
  ['due, while no workflow can be started', { startsFail: true, slotsFull: true }, until('put_off', null)],
  [
    'over the share of its endpoint',
    { slotsFull: true, testsFull: true },
    since('waiting_for_slot', '11:59:00'),
  ],
  ['behind other tests', { testsFull: true }, since('waiting_for_tests', '11:59:00')],
  ['nothing in its way', {}, since('due', '11:59:00')],
])('%s', (_name, facts, said) => {
  expect(deliveryNow({ ...FACTS, ...facts })).toEqual(said);
});
