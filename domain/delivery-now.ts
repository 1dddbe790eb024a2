import { isOpen, type NotificationState } from './notification-states';

/** Most attempts to one endpoint in a process, and most first attempts to it in all processes, unless it is fast. */
export const SENDS_PER_ENDPOINT = 16;
/** The same of an endpoint that answers at once, at most (FAST_ENDPOINT_SLOTS). */
export const SENDS_PER_FAST_ENDPOINT = 40;

/** How long an event waits after the first attempt of an earlier one. */
export const ORDER_WAIT_SECONDS = 60;

/** The facts that decide what a delivery does now. Moments are by the database's clock. */
export interface DeliveryFacts {
  readonly state: NotificationState;
  readonly endReason: string | null;
  readonly dueAt: Date | null;
  readonly takenAt: Date | null;
  readonly nextAttemptAt: Date | null;
  readonly pausedAt: Date | null;
  readonly heldAt: Date | null;
  readonly endedAt: Date | null;
  /** When the attempt under way began; null without one. */
  readonly attemptBeganAt: Date | null;
  readonly pausedBy: string | null;
  readonly partnerPaused: { readonly since: Date; readonly by: string } | null;
  /** The earlier notification that it may not overtake yet. */
  readonly earlier: string | null;
  readonly slotsFull: boolean;
  /** It is a test, and as many tests as allowed are under way. */
  readonly testsFull: boolean;
  /** A workflow for its endpoint was not started a moment ago, because Temporal is away. */
  readonly startsFail: boolean;
  /** Its own workflow could not be started when it was tried last. */
  readonly givenBack: boolean;
  /** Since when our network reaches nobody, if that is why it waits. */
  readonly cutOffSince: Date | null;
  readonly endpointActive: boolean;
  readonly now: Date;
}

export type DeliveryNow =
  | {
      readonly doing: 'ended';
      readonly state: NotificationState;
      readonly reason: string | null;
      readonly since: Date | null;
    }
  | { readonly doing: 'held'; readonly reason: string | null; readonly since: Date | null }
  | { readonly doing: 'sending'; readonly since: Date }
  | { readonly doing: 'paused'; readonly since: Date; readonly by: string | null }
  | { readonly doing: 'partner_paused'; readonly since: Date; readonly by: string }
  | { readonly doing: 'waiting_for_attempt'; readonly until: Date }
  /** Its last attempt failed by a fault of our network, which lasts. */
  | { readonly doing: 'waiting_for_network'; readonly since: Date }
  /** The next attempt should have begun: there is no worker, or Temporal is away. */
  | { readonly doing: 'attempt_overdue'; readonly since: Date }
  | { readonly doing: 'starting'; readonly since: Date | null }
  | { readonly doing: 'without_endpoint' }
  | { readonly doing: 'waiting_for_earlier'; readonly notificationId: string; readonly until: Date | null }
  /** Its workflow cannot be started, which is tried again, but not before `until`. */
  | { readonly doing: 'not_started'; readonly until: Date | null }
  | { readonly doing: 'waiting_for_slot'; readonly since: Date }
  /** It found no slot for long, and is claimed again at this time. */
  | { readonly doing: 'put_back'; readonly until: Date }
  | { readonly doing: 'waiting_for_tests'; readonly since: Date }
  /** Nothing blocks it, and workers claim due notifications within a second. */
  | { readonly doing: 'due'; readonly since: Date };

/** An attempt later than this, in milliseconds, is overdue, even on a busy machine. */
const OVERDUE_AFTER_MS = 10_000;

/** A first attempt begins within this time after its claim, even on a busy machine. */
const STARTS_WITHIN_MS = 3_000;

export function deliveryNow(facts: DeliveryFacts): DeliveryNow {
  const { state, endReason: reason, attemptBeganAt } = facts;
  if (state === 'held') return { doing: 'held', reason, since: facts.heldAt };
  if (!isOpen(state)) return { doing: 'ended', state, reason, since: facts.endedAt };
  // A paused delivery may send too: an attempt under way is finished, and `retry-now` makes one.
  if (attemptBeganAt !== null) return { doing: 'sending', since: attemptBeganAt };
  if (facts.partnerPaused !== null) return { doing: 'partner_paused', ...facts.partnerPaused };
  if (facts.pausedAt !== null) return { doing: 'paused', since: facts.pausedAt, by: facts.pausedBy };
  return state === 'started' ? betweenAttempts(facts) : beforeWorkflow(facts);
}

function betweenAttempts({ nextAttemptAt, takenAt, cutOffSince, now }: DeliveryFacts): DeliveryNow {
  if (cutOffSince !== null) return { doing: 'waiting_for_network', since: cutOffSince };
  if (nextAttemptAt === null) return starting(takenAt, now);
  const overdue = nextAttemptAt.getTime() + OVERDUE_AFTER_MS < now.getTime();
  return overdue
    ? { doing: 'attempt_overdue', since: nextAttemptAt }
    : { doing: 'waiting_for_attempt', until: nextAttemptAt };
}

const starting = (takenAt: Date | null, now: Date): DeliveryNow =>
  takenAt !== null && takenAt.getTime() + STARTS_WITHIN_MS < now.getTime()
    ? { doing: 'attempt_overdue', since: takenAt }
    : { doing: 'starting', since: takenAt };

function beforeWorkflow(facts: DeliveryFacts): DeliveryNow {
  const { dueAt: at, takenAt, now, earlier } = facts;
  const dueAt = at ?? now;
  const due = dueAt <= now;
  if (takenAt !== null && !due)
    return facts.startsFail ? { doing: 'not_started', until: null } : starting(takenAt, now);
  if (!facts.endpointActive) return { doing: 'without_endpoint' };
  if (earlier !== null)
    return { doing: 'waiting_for_earlier', notificationId: earlier, until: due ? null : dueAt };
  if (facts.startsFail || (!due && facts.givenBack))
    return { doing: 'not_started', until: due ? null : dueAt };
  if (!due) return { doing: 'put_back', until: dueAt };
  if (facts.slotsFull) return { doing: 'waiting_for_slot', since: dueAt };
  if (facts.testsFull) return { doing: 'waiting_for_tests', since: dueAt };
  return { doing: 'due', since: dueAt };
}
