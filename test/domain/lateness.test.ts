import { lateReasons, latenessMs, type LatenessFacts, reasonText } from '../../domain/lateness';

const at = (time: string) => new Date(`2026-11-22T${time}Z`);
const FACTS: LatenessFacts = {
  createdAt: at('12:00:00'),
  sentAgainAt: null,
  deliveredAt: at('12:10:00'),
  endedAt: null,
  attempts: [{ at: at('12:00:01'), outcome: 'delivered', failure: null, httpStatus: 200 }],
  interruptions: [],
  earlier: null,
  now: at('13:00:00'),
};
const attempt = (time: string, failure: string | null, httpStatus: number | null = null) => ({
  at: at(time),
  outcome: failure === null ? 'delivered' : 'failed',
  failure,
  httpStatus,
});
const from = (begin: string, end: string | null) => ({ from: at(begin), to: end === null ? null : at(end) });
const late = { attempts: [attempt('12:09:59', null)] };

test.each<[string, Partial<LatenessFacts>, unknown[]]>([
  ['an event that was delivered at once', {}, []],
  [
    'failures, those with the same answer together',
    {
      attempts: [
        attempt('12:00:01', 'http_status', 500),
        attempt('12:00:06', 'timeout'),
        attempt('12:01:06', 'http_status', 500),
        attempt('12:09:59', null),
      ],
    },
    [
      { why: 'failed', what: '500 (2 times)', ...from('12:00:01', '12:01:06') },
      { why: 'failed', what: 'timeout', ...from('12:00:06', '12:00:06') },
    ],
  ],
  [
    'a hold and a pause, but none that was over before or began after',
    {
      ...late,
      interruptions: [
        { why: 'paused', what: 'joe', ...from('11:00:00', '11:59:00') },
        { why: 'held', what: 'endpoint_gone', ...from('12:00:00', '12:05:00') },
        { why: 'paused', what: 'jane', ...from('12:05:00', '12:09:00') },
        { why: 'paused', what: 'joe', ...from('12:30:00', null) },
      ],
    },
    [
      { why: 'held', what: 'endpoint_gone', ...from('12:00:00', '12:05:00') },
      { why: 'paused', what: 'jane', ...from('12:05:00', '12:09:00') },
    ],
  ],
  [
    'an outage of ours',
    { ...late, interruptions: [{ why: 'our_outage', what: 'temporal', ...from('11:59:00', '12:09:30') }] },
    [{ why: 'our_outage', what: 'temporal', ...from('11:59:00', '12:09:30') }],
  ],
  [
    'a wait for the earlier event of the application',
    { ...late, earlier: { ...from('11:59:00', '12:09:58'), notificationId: 'ntf_1' } },
    [{ why: 'earlier_event', what: 'ntf_1', ...from('12:00:00', '12:09:58') }],
  ],
  [
    'the same when nothing is known of the end of that one: it waited until its own first attempt',
    { ...late, earlier: { ...from('11:59:00', null), notificationId: 'ntf_1' } },
    [{ why: 'earlier_event', what: 'ntf_1', ...from('12:00:00', '12:09:59') }],
  ],
  [
    'a resend that brought the delivery',
    { sentAgainAt: at('12:09:00'), attempts: [attempt('12:00:01', 'timeout'), attempt('12:09:59', null)] },
    [
      { why: 'failed', what: 'timeout', ...from('12:00:01', '12:00:01') },
      { why: 'sent_again', what: null, ...from('12:09:00', '12:09:00') },
    ],
  ],
  ['a resend of what had been delivered', { sentAgainAt: at('12:30:00') }, []],
  [
    'a wait that nothing else explains: for a slot of its endpoint',
    late,
    [{ why: 'no_free_slot', what: null, ...from('12:00:00', '12:09:59') }],
  ],
  [
    'one that is still paused',
    {
      deliveredAt: null,
      attempts: [],
      interruptions: [{ why: 'paused', what: 'jane', ...from('12:00:00', null) }],
    },
    [{ why: 'paused', what: 'jane', ...from('12:00:00', null) }],
  ],
  [
    'an attempt whose process died',
    {
      attempts: [
        { at: at('12:00:01'), outcome: 'unknown', failure: null, httpStatus: null },
        attempt('12:00:31', null),
      ],
    },
    [{ why: 'unanswered', what: '1', ...from('12:00:01', '12:00:01') }],
  ],
])('%s', (_, facts, reasons) => expect(lateReasons({ ...FACTS, ...facts })).toEqual(reasons));

test('late until the delivery, or until now', () => {
  expect(latenessMs(FACTS)).toBe(600_000);
  expect(latenessMs({ ...FACTS, deliveredAt: null })).toBe(3_600_000);
  // From the order to send it again; but what had been delivered does not become late by another resend.
  expect(latenessMs({ ...FACTS, sentAgainAt: at('12:09:00') })).toBe(60_000);
  expect(latenessMs({ ...FACTS, deliveredAt: null, sentAgainAt: at('12:59:00') })).toBe(60_000);
  expect(latenessMs({ ...FACTS, sentAgainAt: at('12:30:00') })).toBe(600_000);
});

test.each([
  ['failed', '503 (3 times)', 'your endpoint answered 503 (3 times), 11-22 14:05:12Z to now'],
  ['failed', 'timeout', 'your endpoint failed: timeout, 11-22 14:05:12Z to now'],
  ['unanswered', '1', 'an attempt of ours has no recorded answer, 11-22 14:05:12Z to now'],
  ['unanswered', '2', '2 attempts of ours have no recorded answer, 11-22 14:05:12Z to now'],
  ['held', 'endpoint_gone', 'held 11-22 14:05:12Z to now: the endpoint answered 410 and was disabled'],
] as const)('%s, %s: in words that a partner can read', (why, what, text) => {
  expect(reasonText({ why, what, from: new Date('2026-11-22T14:05:12Z'), to: null })).toBe(text);
});
