import type { DeliveryNow } from '../domain/delivery-now';
import { age, moment } from './output';

/** What a delivery does now, as scripts read it; a moment is null where there is none. */
export function nowView(now: DeliveryNow) {
  return {
    doing: now.doing,
    since: 'since' in now ? now.since : null,
    until: 'until' in now ? now.until : null,
    paused_by: now.doing === 'paused' ? now.by : null,
    waits_for: now.doing === 'waiting_for_earlier' ? now.notificationId : null,
  };
}

/** In a sentence, for `show`. */
export function nowText(now: DeliveryNow): string {
  switch (now.doing) {
    case 'ended':
      return `${reasoned(now.state, now.reason)}${now.since === null ? '' : ` since ${moment(now.since)}`}`;
    case 'held':
      return `held since ${now.since === null ? '?' : moment(now.since)}, ${WHY_HELD[now.reason ?? ''] ?? 'because no endpoint is registered'}`;
    case 'sending':
      return `an attempt is under way since ${moment(now.since)}`;
    case 'paused':
      return `paused since ${moment(now.since)}${now.by === null ? '' : ` by ${now.by}`}: notifications resume lets it go on`;
    case 'waiting_for_attempt':
      return `waits for its next attempt at ${moment(now.until)}`;
    case 'attempt_overdue':
      return `its next attempt was due at ${moment(now.since)} and has not begun: is a worker running, and Temporal there?`;
    case 'starting':
      return 'a worker has taken it, and its first attempt is about to begin';
    case 'without_endpoint':
      return 'there is no active endpoint: it is held within seconds; a test fails';
    case 'waiting_for_earlier':
      return `waits for the earlier event ${now.notificationId} of its application${
        now.until === null ? '' : `, until ${moment(now.until)} at the latest`
      }`;
    case 'put_off':
      return 'its workflow cannot be started, which is tried again every few seconds: is Temporal there?';
    case 'waiting_for_slot':
      return `due since ${moment(now.since)}, over its endpoint's share: all slots of the endpoint are taken`;
    case 'waiting_for_tests':
      return `due since ${moment(now.since)}, behind the tests of this endpoint that are under way`;
    case 'due':
      return `due since ${moment(now.since)}: the next worker takes it, within a second when one is running`;
  }
}

const WHY_HELD: Readonly<Record<string, string>> = {
  endpoint_gone: 'because its endpoint answered 410 and was disabled',
  endpoint_failing: 'because its endpoint failed for 120 h and was disabled',
  endpoint_disabled: 'because an operator has disabled its endpoint',
};

/** In a few words, for a line of a list. */
export function nowBrief(now: DeliveryNow, at: Date): string {
  const since = (moment: Date | null) => (moment === null ? '' : ` ${age(moment, at)}`);
  switch (now.doing) {
    case 'ended':
      return reasoned(now.state, now.reason);
    case 'held':
      return `held${since(now.since)}${now.reason === null ? '' : `: ${now.reason}`}`;
    case 'sending':
      return 'sending';
    case 'paused':
      return `paused${since(now.since)}${now.by === null ? '' : ` by ${now.by}`}`;
    case 'waiting_for_attempt':
      return `next attempt ${clock(now.until, at)}`;
    case 'attempt_overdue':
      return `attempt overdue${since(now.since)}`;
    case 'starting':
      return 'starting';
    case 'without_endpoint':
      return 'no endpoint';
    case 'waiting_for_earlier':
      return `after ${now.notificationId}`;
    case 'put_off':
      return 'start fails';
    case 'waiting_for_slot':
      return `no free slot${since(now.since)}`;
    case 'waiting_for_tests':
      return 'behind other tests';
    case 'due':
      return `due${since(now.since)}`;
  }
}

const reasoned = (state: string, reason: string | null) => (reason === null ? state : `${state}: ${reason}`);

/** `14:05:12`, with the day when that is another one; UTC. */
function clock(moment: Date, at: Date): string {
  const [day = '', time = ''] = moment.toISOString().split('T');
  return `${at.toISOString().startsWith(day) ? '' : `${day.slice(5)} `}${time.slice(0, 8)}Z`;
}
