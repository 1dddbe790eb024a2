import { APPLICATION_STATES, judgeStatus, type ApplicationState, type Verdict } from './application-states';

/** A lender's event that waits for the steps before it. */
export interface WaitingEvent {
  readonly status: ApplicationState;
  /** When the lender says it happened. */
  readonly occurredAt: Date;
  /** The order of arrival. */
  readonly eventNumber: number;
}

export interface Standing {
  readonly state: ApplicationState;
  /** When the lender says that it came into this state. */
  readonly stateOccurredAt: Date;
  /** When it did so here. */
  readonly updatedAt: Date;
}

/** A state that its lender's clock dated ahead of ours began when it was applied: what comes after that is not late. */
export function judgeEvent(
  { state, stateOccurredAt, updatedAt }: Standing,
  event: Pick<WaitingEvent, 'status' | 'occurredAt'>,
): Verdict {
  const since = stateOccurredAt < updatedAt ? stateOccurredAt : updatedAt;
  return judgeStatus(state, event.status, event.occurredAt < since);
}

/** As they happened; what lenders date alike goes in the order of the states. */
export function byOccurrence(a: WaitingEvent, b: WaitingEvent): number {
  const position = ({ status }: WaitingEvent) => APPLICATION_STATES.indexOf(status);
  return (
    a.occurredAt.getTime() - b.occurredAt.getTime() ||
    position(a) - position(b) ||
    a.eventNumber - b.eventNumber
  );
}

/**
 * Chooses which waiting event is applied next. The first that may follow the state by the table. Else, where the wait of
 * one is over, the first that lies ahead of the state, up to the last one whose wait is over: what happened before that one
 * could not be applied after it.
 * @param waiting in the order of `byOccurrence`
 * @returns null when none can be applied now
 */
export function nextToApply<E extends WaitingEvent>(
  at: Standing,
  waiting: readonly E[],
  waitIsOver: (event: E) => boolean,
): E | null {
  const following = waiting.find((event) => judgeEvent(at, event) === 'applied');
  if (following !== undefined) return following;
  const upTo = waiting.findLastIndex(waitIsOver) + 1;
  return waiting.slice(0, upTo).find((event) => judgeEvent(at, event) === 'waiting') ?? null;
}
