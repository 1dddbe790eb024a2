import {
  APPLICATION_STATES,
  STORIES,
  TRANSITIONS,
  type ApplicationState,
} from '../../domain/application-states';

/** What the lender, or the customer, can do next, and the events that the simulator then reports. */
interface Choice {
  readonly label: string;
  readonly events: readonly ApplicationState[];
}

const later = (from: ApplicationState, story: readonly ApplicationState[]) =>
  story.filter((state) => APPLICATION_STATES.indexOf(state) > APPLICATION_STATES.indexOf(from));

/** From `created` on, the customer submits first. */
const decided = (from: ApplicationState, end: ApplicationState): readonly ApplicationState[] =>
  from === 'created' ? ['submitted', end] : [end];

/** Whole decisions that are open in a state; an event that the table does not allow next is not among them. */
function decisions(from: ApplicationState): Choice[] {
  const all: Choice[] = [
    { label: 'Approve, and complete', events: later(from, STORIES.completed) },
    { label: 'Refer, then approve', events: later(from, STORIES.referred_then_completed) },
    { label: 'Decline', events: decided(from, 'declined') },
    { label: 'Customer cancels', events: ['cancelled'] },
    { label: 'Refund in part', events: ['partially_refunded'] },
    { label: 'Refund', events: ['refunded'] },
  ];
  return all.filter(({ label, events: [first] }) => {
    if (first === undefined || !TRANSITIONS[from].includes(first)) return false;
    return !label.startsWith('Refer') || from === 'created' || first === 'referred';
  });
}

/** For each state the decisions, and the single events that may follow. */
export const CHOICES = Object.fromEntries(
  APPLICATION_STATES.map((from) => [from, { decisions: decisions(from), steps: TRANSITIONS[from] }]),
);
