import { lateReasons, latenessMs, reasonText } from '../../domain/lateness';
import type { LatenessFacts, LateReason } from '../../domain/lateness';

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
const until = (end: string | null) => (end === null ? null : at(end));
/** A reason, or an interruption, from one time of this day to another, or still going on. */
function reason(why: LateReason['why'], what: string | null, begin: string, end: string | null = begin) {
  return { why, what, from: at(begin), to: until(end) };
}
const HELD = reason('held', 'endpoint_gone', '12:00:00', '12:05:00');
const PAUSED = reason('paused', 'jane', '12:05:00', '12:09:00');
const late = { attempts: [attempt('12:09:59', null)] };
const interrupted = (...interruptions: LatenessFacts['interruptions']) => ({ ...late, interruptions });
/** Behind an earlier event, which was over at this time. */
const behind = (end: string | null) => ({
  ...late,
  earlier: { from: at('11:59:00'), to: until(end), notificationId: 'ntf_1' },
});
const earlier = (end: string) => [reason('earlier_event', 'ntf_1', '12:00:00', end)];

test.each<[string, Partial<LatenessFacts>, unknown[]]>([
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
    [reason('failed', '500 (2 times)', '12:00:01', '12:01:06'), reason('failed', 'timeout', '12:00:06')],
  ],
  [
    'a hold and a pause, but none that was over before or began after',
    interrupted(
      reason('paused', 'joe', '11:00:00', '11:59:00'),
      HELD,
      PAUSED,
      reason('paused', 'joe', '12:30:00', null),
    ),
    [HELD, PAUSED],
  ],
  ['a wait for the earlier event of the application', behind('12:09:58'), earlier('12:09:58')],
  [
    'the same when nothing is known of the end of that one: it waited until its own first attempt',
    behind(null),
    earlier('12:09:59'),
  ],
  ['a resend of what had been delivered', { sentAgainAt: at('12:30:00') }, []],
  [
    'a wait that nothing else explains: for a slot of its endpoint',
    late,
    [reason('no_free_slot', null, '12:00:00', '12:09:59')],
  ],
  [
    'an attempt whose process died',
    { attempts: [{ ...attempt('12:00:01', null), outcome: 'unknown' }, attempt('12:00:31', null)] },
    [reason('unanswered', '1', '12:00:01')],
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
