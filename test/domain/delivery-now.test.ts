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

test.each<[string, Partial<DeliveryFacts>, unknown]>([
  [
    'ended',
    { state: 'failed', endReason: 'exhausted', endedAt: at('10:00:00') },
    { doing: 'ended', state: 'failed', reason: 'exhausted', since: at('10:00:00') },
  ],
  [
    'held',
    { state: 'held', endReason: 'webhook_not_registered', heldAt: at('09:00:00') },
    { doing: 'held', reason: 'webhook_not_registered', since: at('09:00:00') },
  ],
  [
    'paused before its next attempt',
    { ...retrying, ...paused },
    { doing: 'paused', since: at('11:00:00'), by: 'jane' },
  ],
  [
    'paused, with an attempt by retry-now',
    { ...retrying, ...paused, attemptBeganAt: at('11:59:58') },
    { doing: 'sending', since: at('11:59:58') },
  ],
  [
    'paused, after its planned attempt passed',
    { ...retrying, ...paused, nextAttemptAt: at('11:30:00') },
    { doing: 'paused', since: at('11:00:00'), by: 'jane' },
  ],
  [
    'paused with its partner, whatever else it waits for',
    { ...behind, partnerPaused: { since: at('10:30:00'), by: 'joe' } },
    { doing: 'partner_paused', since: at('10:30:00'), by: 'joe' },
  ],
  [
    'being sent while its partner is paused',
    { ...retrying, attemptBeganAt: at('11:59:58'), partnerPaused: { since: at('11:59:59'), by: 'joe' } },
    { doing: 'sending', since: at('11:59:58') },
  ],
  ['between attempts', retrying, { doing: 'waiting_for_attempt', until: at('12:05:00') }],
  [
    'an attempt that is just due',
    { ...retrying, nextAttemptAt: at('11:59:55') },
    { doing: 'waiting_for_attempt', until: at('11:59:55') },
  ],
  [
    'an attempt that nobody makes',
    { ...retrying, nextAttemptAt: at('11:50:00') },
    { doing: 'attempt_overdue', since: at('11:50:00') },
  ],
  [
    'the first attempt',
    { state: 'started', takenAt: at('11:59:59'), attemptBeganAt: at('11:59:59') },
    { doing: 'sending', since: at('11:59:59') },
  ],
  [
    'taken, its workflow started',
    { state: 'started', takenAt: at('11:59:59') },
    { doing: 'starting', since: at('11:59:59') },
  ],
  [
    'taken, its workflow not started yet',
    { takenAt: at('11:59:59'), dueAt: at('12:00:59') },
    { doing: 'starting', since: at('11:59:59') },
  ],
  [
    'taken again, after its workflow could not be started',
    { takenAt: at('11:59:59'), dueAt: at('12:00:09'), startsFail: true },
    { doing: 'put_off', until: null },
  ],
  [
    'taken, and nothing came of it',
    { takenAt: at('11:59:55'), dueAt: at('12:00:05') },
    { doing: 'attempt_overdue', since: at('11:59:55') },
  ],
  [
    'its workflow started, and no attempt began',
    { state: 'started', takenAt: at('11:59:50') },
    { doing: 'attempt_overdue', since: at('11:59:50') },
  ],
  [
    'taken by a worker that died',
    { takenAt: at('11:50:00'), dueAt: at('11:51:00') },
    { doing: 'due', since: at('11:51:00') },
  ],
  ['no endpoint', { endpointActive: false, ...behind }, { doing: 'without_endpoint' }],
  ['behind an earlier event', behind, { doing: 'waiting_for_earlier', notificationId: 'ntf_1', until: null }],
  [
    'behind an earlier event that failed once',
    { ...behind, dueAt: at('12:00:30') },
    { doing: 'waiting_for_earlier', notificationId: 'ntf_1', until: at('12:00:30') },
  ],
  [
    'behind an earlier event, and slots are full',
    { ...behind, slotsFull: true },
    { doing: 'waiting_for_earlier', notificationId: 'ntf_1', until: null },
  ],
  ['given back', { dueAt: at('12:00:05') }, { doing: 'put_off', until: at('12:00:05') }],
  [
    'due, while no workflow can be started',
    { startsFail: true, slotsFull: true },
    { doing: 'put_off', until: null },
  ],
  [
    'over the share of its endpoint',
    { slotsFull: true, testsFull: true },
    { doing: 'waiting_for_slot', since: at('11:59:00') },
  ],
  ['behind other tests', { testsFull: true }, { doing: 'waiting_for_tests', since: at('11:59:00') }],
  ['nothing in its way', {}, { doing: 'due', since: at('11:59:00') }],
])('%s', (_name, facts, said) => {
  expect(deliveryNow({ ...FACTS, ...facts })).toEqual(said);
});
