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
  givenBack: false,
  cutOffSince: null,
  endpointActive: true,
  now: NOW,
};
const next = (time: string) => ({ state: 'started', nextAttemptAt: at(time) }) as const;
const paused = { ...next('12:05:00'), pausedAt: at('11:00:00'), pausedBy: 'jane' } as const;
const sending = { attemptBeganAt: at('11:59:58') } as const;
const behind = { earlier: 'ntf_1' } as const;
const begun = (time: string) => ({ state: 'started', takenAt: at(time) }) as const;
/** Claimed, with the end of its lease. */
const claimed = (time: string, until: string) => ({ takenAt: at(time), dueAt: at(until) });
const partnerPaused = { since: at('11:59:59'), by: 'joe' };

/** What a delivery does, since a time of this day, or until one. */
const since = (doing: string, time: string, more = {}) => ({ doing, since: at(time), ...more });
const until = (doing: string, time: string | null, more = {}) => ({
  doing,
  until: time && at(time),
  ...more,
});
const SENDING = since('sending', '11:59:58');
const PAUSED = since('paused', '11:00:00', { by: 'jane' });
const earlier = (time: string | null) => until('waiting_for_earlier', time, { notificationId: 'ntf_1' });

test.each<[string, Partial<DeliveryFacts>, unknown]>([
  ['paused, with an attempt by retry-now', { ...paused, ...sending }, SENDING],
  ['paused, after its planned attempt passed', { ...paused, nextAttemptAt: at('11:30:00') }, PAUSED],
  [
    'paused with its partner, whatever else it waits for',
    { ...behind, partnerPaused },
    since('partner_paused', '11:59:59', { by: 'joe' }),
  ],
  ['being sent while its partner is paused', { ...next('12:05:00'), ...sending, partnerPaused }, SENDING],
  ['an attempt that is just due', next('11:59:55'), until('waiting_for_attempt', '11:59:55')],
  ['the first attempt', { ...begun('11:59:57'), ...sending }, SENDING],
  ['taken, its workflow not started yet', claimed('11:59:59', '12:00:59'), since('starting', '11:59:59')],
  [
    'taken again, after its workflow could not be started',
    { ...claimed('11:59:59', '12:00:09'), startsFail: true },
    until('not_started', null),
  ],
  ['taken, and nothing came of it', claimed('11:59:55', '12:00:05'), since('attempt_overdue', '11:59:55')],
  ['its workflow started, and no attempt began', begun('11:59:50'), since('attempt_overdue', '11:59:50')],
  ['taken by a worker that died', claimed('11:50:00', '11:51:00'), since('due', '11:51:00')],
  ['no endpoint', { endpointActive: false, ...behind }, { doing: 'without_endpoint' }],
  ['behind an earlier event, and slots are full', { ...behind, slotsFull: true }, earlier(null)],
  ['given back', { dueAt: at('12:00:05'), givenBack: true }, until('not_started', '12:00:05')],
  [
    'due, while no workflow can be started',
    { startsFail: true, slotsFull: true },
    until('not_started', null),
  ],
  ['over its share', { slotsFull: true, testsFull: true }, since('waiting_for_slot', '11:59:00')],
  ['behind other tests', { testsFull: true }, since('waiting_for_tests', '11:59:00')],
])('%s', (_name, facts, said) => {
  expect(deliveryNow({ ...FACTS, ...facts })).toEqual(said);
});
