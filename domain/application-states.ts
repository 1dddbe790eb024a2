/** States of a credit application, in the order in which they are usually reached. */
export const APPLICATION_STATES = [
  'created',
  'submitted',
  'referred',
  'accepted',
  'action_required',
  'deposit_paid',
  'signed',
  'ready',
  'activated',
  'paid_out',
  'completed',
  'declined',
  'cancelled',
  'expired',
  'partially_refunded',
  'refunded',
] as const;

export type ApplicationState = (typeof APPLICATION_STATES)[number];

/** The states that may follow each state. Partial refunds may repeat, so that state may follow itself. */
export const TRANSITIONS: Readonly<Record<ApplicationState, readonly ApplicationState[]>> = {
  created: ['submitted', 'cancelled', 'expired'],
  submitted: ['referred', 'accepted', 'declined', 'cancelled', 'expired'],
  referred: ['accepted', 'declined', 'action_required', 'cancelled', 'expired'],
  accepted: ['action_required', 'deposit_paid', 'signed', 'declined', 'cancelled', 'expired'],
  action_required: ['referred', 'accepted', 'deposit_paid', 'signed', 'declined', 'cancelled', 'expired'],
  deposit_paid: ['action_required', 'signed', 'declined', 'cancelled', 'expired'],
  signed: ['action_required', 'deposit_paid', 'ready', 'declined', 'cancelled', 'expired'],
  ready: ['activated', 'cancelled', 'expired'],
  activated: ['paid_out', 'cancelled', 'partially_refunded', 'refunded'],
  paid_out: ['completed', 'partially_refunded', 'refunded'],
  completed: ['partially_refunded', 'refunded'],
  declined: [],
  cancelled: [],
  expired: [],
  partially_refunded: ['partially_refunded', 'refunded', 'completed'],
  refunded: [],
};

/** What the simulator of the sandbox can report of an application at once, after `created`. */
const ON_THE_WAY = ['accepted', 'signed', 'ready', 'activated', 'paid_out', 'completed'] as const;
export const STORIES = {
  completed: ['submitted', ...ON_THE_WAY],
  declined: ['submitted', 'declined'],
  referred_then_completed: ['submitted', 'referred', ...ON_THE_WAY],
  refunded: ['submitted', ...ON_THE_WAY, 'refunded'],
  cancelled: ['submitted', 'accepted', 'cancelled'],
} as const satisfies Readonly<Record<string, readonly ApplicationState[]>>;

export type Story = keyof typeof STORIES;

const position = (state: ApplicationState) => APPLICATION_STATES.indexOf(state);

/** Lenders skip steps: up to `signed`, any later state up to `activated` may follow, or `declined`. */
const SKIPS = { last: position('signed'), furthest: position('activated') } as const;

function isSkip(from: ApplicationState, to: ApplicationState): boolean {
  if (position(from) > SKIPS.last) return false;
  return to === 'declined' || (position(to) > position(from) && position(to) <= SKIPS.furthest);
}

/** Of a stored state: a newer release, which was taken back, may have stored one that this one does not know. */
export const isKnownState = (state: ApplicationState): boolean => APPLICATION_STATES.includes(state);

/** Whether a state may directly follow another, by the table or by skipping steps; nothing follows an unknown one. */
export function mayFollow(from: ApplicationState, to: ApplicationState): boolean {
  if (!isKnownState(from)) return false;
  return TRANSITIONS[from].includes(to) || isSkip(from, to);
}

export const statesAfter = (from: ApplicationState) => APPLICATION_STATES.filter((to) => mayFollow(from, to));

const forwardFrom = (from: ApplicationState) =>
  statesAfter(from).filter((to) => position(to) > position(from));

const AHEAD = new Map<ApplicationState, ReadonlySet<ApplicationState>>();
for (const from of APPLICATION_STATES.toReversed())
  AHEAD.set(from, new Set(forwardFrom(from).flatMap((to) => [to, ...(AHEAD.get(to) ?? [])])));

/** The states between two, on the shortest way; none when the second follows directly, or never. */
export function missingSteps(from: ApplicationState, to: ApplicationState): readonly ApplicationState[] {
  if (AHEAD.get(from)?.has(to) !== true) return [];
  const ways: ApplicationState[][] = [[from]];
  for (const way of ways) {
    const next = forwardFrom(way.at(-1) ?? from);
    if (next.includes(to)) return way.slice(1);
    ways.push(...next.map((step) => [...way, step]));
  }
  return [];
}

/** `waiting`: a step before it is missing. `not_applied`: that state is over, or can never follow. */
export const VERDICTS = ['applied', 'same_state', 'waiting', 'not_applied'] as const;
export type Verdict = (typeof VERDICTS)[number];

/**
 * Judges a lender's status against an application's state.
 * @param happenedEarlier whether the lender dates it before the event that led to the state: where the
 * table allows a step back, a late event must not look like one
 */
export function judgeStatus(from: ApplicationState, to: ApplicationState, happenedEarlier: boolean): Verdict {
  if (mayFollow(from, to))
    return happenedEarlier && position(to) < position(from) ? 'not_applied' : 'applied';
  if (from === to) return 'same_state';
  return AHEAD.get(from)?.has(to) ? 'waiting' : 'not_applied';
}

export interface WaitingEvent {
  readonly status: ApplicationState;
  readonly occurredAt: Date;
  readonly eventNumber: number;
}

export interface Standing {
  readonly state: ApplicationState;
  readonly stateOccurredAt: Date;
  readonly updatedAt: Date;
}

/** A state dated ahead of our clock counts from its application, so that the next event is not late. */
function happenedEarlier(
  { stateOccurredAt, updatedAt }: Standing,
  { occurredAt }: Pick<WaitingEvent, 'occurredAt'>,
): boolean {
  return occurredAt < (stateOccurredAt < updatedAt ? stateOccurredAt : updatedAt);
}

export function judgeEvent(at: Standing, event: Pick<WaitingEvent, 'status' | 'occurredAt'>): Verdict {
  return judgeStatus(at.state, event.status, happenedEarlier(at, event));
}

/** Ends that an application can reach before it is submitted. */
const BEFORE_SUBMITTED: readonly ApplicationState[] = ['cancelled', 'expired'];

/**
 * Whether an event that can never be applied contradicts what the lender has reported: it follows an end, or
 * steps back without being a late report. A late report is of a step on the way to the state: one that the
 * lender dates before it, or `submitted`, which lenders that skip it often date when they send it.
 */
export function contradicts(at: Standing, event: Pick<WaitingEvent, 'status' | 'occurredAt'>): boolean {
  if (judgeEvent(at, event) !== 'not_applied') return false;
  const isOnTheWay = AHEAD.get(event.status)?.has(at.state) === true;
  const isLateSubmitted = event.status === 'submitted' && !BEFORE_SUBMITTED.includes(at.state);
  return !(isOnTheWay && (happenedEarlier(at, event) || isLateSubmitted));
}

/** In the order in which they happened, or of the states at the same moment. */
export function byOccurrence(a: WaitingEvent, b: WaitingEvent): number {
  const apart = a.occurredAt.getTime() - b.occurredAt.getTime();
  return apart || position(a.status) - position(b.status) || a.eventNumber - b.eventNumber;
}

/**
 * Chooses the waiting event to apply next: the first that may follow the state by the table, else the
 * first ahead of the state, up to the last event whose wait is over, as events before that one could not
 * be applied after it.
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
