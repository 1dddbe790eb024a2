import type { Moment, Terms } from '../rows';
import { isOver, type Event, type World } from '../world';
import { mayFail, type WorldSetup } from './turn';

const atLeast = (moment: Moment, least: number): Moment => (moment === null ? null : Math.max(moment, least));
/** No step depends on the order of what is in flight. */
const byText = (one: object, other: object) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1);
const past = (moment: Moment): Moment => (moment === null ? null : -1);

/**
 * The same world without what makes no difference any more, so that equal worlds are found equal. The present is 0.
 * Whatever is left out could only do steps that change nothing else, so the world without it has the same future.
 */
export const canonical = (world: World, before: World, setup: WorldSetup): World => ({
  ...world,
  events: world.events.map((one, at) =>
    one === before.events[at] && world.faults === before.faults
      ? one
      : ofEvent(withoutLeftovers(one, mayFail(setup, world, 'late')), setup.terms),
  ),
});

/** @param recordedLate a worker may still record an answer that nobody waits for */
function withoutLeftovers(event: Event, recordedLate: boolean): Event {
  const { d, attempts } = event;
  const isPresent = (generation: number) => generation === d?.generation;
  const isOpen = (attempt: number) => attempts.some((one) => one.number === attempt && one.outcome === null);
  return {
    ...event,
    // What belongs to an earlier generation finds that it is over, unless it has an outcome to record or an order to end.
    starting: event.starting.filter(isPresent),
    noting: event.noting.filter((generation) => isPresent(generation) && d?.state === 'queued'),
    wakes: event.wakes.filter(isPresent),
    found: event.found !== null && isPresent(event.found.generation) ? event.found : null,
    workflows: event.workflows.filter(
      (one) =>
        isPresent(one.generation) ||
        ['sends', 'records', 'cancels'].includes(one.at) ||
        (one.cancel && !isOver(one)),
    ),
    // A late answer is forgotten if it cannot be recorded, and a late failure if its attempt is closed.
    jobs: event.jobs.filter(
      ({ late, at, result, number }) =>
        !late ||
        ((at === 'recording' || recordedLate) &&
          ((result !== 'failed' && result !== 'ours') || isOpen(number))),
    ),
  };
}

function ofEvent(event: Event, { orderWait, checkAfter }: Terms): Event {
  const { n, d, attempts } = event;
  const jobs = event.jobs.toSorted(byText);
  const order = d?.first_attempt_at ?? null;
  const workflows = event.workflows
    .map((one) => ({
      ...one,
      number: one.at === 'records' || one.at === 'sends' ? one.number : 0,
      result: one.at === 'records' ? one.result : null,
      timer: one.at === 'waits' ? atLeast(one.timer, 0) : null,
      woken: one.woken && !isOver(one),
      cancel: one.cancel && !isOver(one),
    }))
    .toSorted(byText);
  // Of closed attempts only those that somebody may still report.
  const known = attempts.filter(
    (one) => one.outcome === null || [...jobs, ...workflows].some(({ number }) => number === one.number),
  );
  const began = attempts.find(({ outcome }) => outcome === null)?.began ?? null;
  return {
    ...event,
    passed: event.passed || (n?.end ?? null) !== null || (order !== null && order <= -orderWait),
    attempts: known.map((one) => ({ ...one, began: -2 })),
    workflows,
    jobs,
    d: d && {
      ...d,
      due_at: d.state === 'queued' ? Math.max(d.due_at, 0) : 0,
      taken_at: past(d.taken_at),
      started_at: d.checked_at === null ? atLeast(d.started_at, -checkAfter) : null,
      first_attempt_at: atLeast(order, -orderWait),
      next_attempt_at: atLeast(d.next_attempt_at, 0),
      // Before or during the attempt under way.
      hurried_at: d.hurried_at !== null && began !== null && d.hurried_at <= began ? -3 : past(d.hurried_at),
      ordered_at: past(d.ordered_at),
      paused_at: past(d.paused_at),
      held_at: past(d.held_at),
      checked_at: atLeast(d.checked_at, -checkAfter),
    },
  };
}

/** A tick later, also by the clock of Temporal. */
export const aged = (event: Event): Event => ({
  ...moved(event, 1),
  workflows: event.workflows.map((one) => ({ ...one, timer: nearer(one.timer, 1) })),
});

/** All moments of its row are a tick nearer, or further away. */
export function moved(event: Event, by: number): Event {
  const { d } = event;
  if (d === null) return event;
  const due_at = d.due_at - by;
  const first_attempt_at = nearer(d.first_attempt_at, by);
  const next_attempt_at = nearer(d.next_attempt_at, by);
  const [checked_at, started_at] = [nearer(d.checked_at, by), nearer(d.started_at, by)];
  return { ...event, d: { ...d, due_at, first_attempt_at, next_attempt_at, checked_at, started_at } };
}

const nearer = (moment: Moment, by: number): Moment => (moment === null ? null : moment - by);
