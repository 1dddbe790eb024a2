import { blocks, follows } from './rows';
import type { Rows, Sight } from './rows';
import type { Event, World, WorldSetup } from './world';

const underWay = ({ attempts }: Rows) => attempts.filter(({ outcome }) => outcome === null);
const begins = (after: Rows, before: Rows) =>
  before.d !== null && (after.d?.attempts ?? 0) > before.d.attempts && underWay(after).length > 0;
const generationOf = ({ n, d }: Rows) => d?.generation ?? n?.generation ?? 0;

type Breaks<Of, More extends readonly unknown[] = []> = (after: Of, before: Of, ...more: More) => boolean;

/** What holds for the rows of an event and each step, in the search and in every trace. Each says whether it is broken. */
const OF_ROWS: Readonly<Record<string, Breaks<Rows>>> = {
  'M1 a notification has either an end or a row': ({ n, d }) =>
    n !== null && (n.end === null) === (d === null),
  'M2 it counts once, as what it was': ({ n, counted: { delivered, failed } }) =>
    n !== null && (delivered !== Number(n.delivered) || failed !== Number(n.failed && !n.delivered)),
  'M3 once delivered, always delivered': (after, before) =>
    before.n?.delivered === true && !after.n?.delivered,
  'M4 an attempt begins only for the present generation, and not while it is held': (after, before) =>
    begins(after, before) &&
    (before.d?.state === 'held' ||
      underWay(after).some(({ generation }) => generation !== before.d?.generation)),
  'M5 one attempt at a time': (after) => underWay(after).length > 1,
  'M6 attempts are numbered one after the other': (after, before) =>
    begins(after, before) && after.d?.attempts !== (before.d?.attempts ?? 0) + 1,
  'M7 a generation never comes back': (after, before) => generationOf(after) < generationOf(before),
};

/** What the search knows beside the rows: pauses, times, other events, the receiver. */
const OF_EVENTS: Readonly<Record<string, Breaks<Event, [Around]>>> = {
  'M8 what is delivered was answered 2xx': ({ n, accepted }) => n !== null && n.delivered && !accepted,
  'M9 no attempt begins during a pause, or earlier than planned, unless it was ordered': (
    after,
    before,
    { world },
  ) => begins(after, before) && (world.partnerPaused || follows(before, generationOf(before), 0) !== 'due'),
  'M10 no event overtakes an earlier one of its application': (after, before, { earlier, sight }) =>
    begins(after, before) &&
    after.d?.attempts === 1 &&
    earlier.some((one) => blocks(one, sight) && !one.passed),
};

export const ALWAYS = Object.entries(OF_ROWS);
const SEARCHED = Object.entries(OF_EVENTS);

interface Around {
  readonly world: World;
  readonly earlier: readonly Event[];
  readonly sight: Sight;
}

/** The invariants that the step from one world to another breaks. */
export function broken(setup: WorldSetup, before: World, after: World): string[] {
  const { terms, quota = 1, slots = 16, events } = setup;
  const sight = { now: 0, terms, endpoint: before.endpoint, partnerPaused: before.partnerPaused };
  const found = after.events.flatMap((event, at) => {
    const was = before.events[at];
    if (was === undefined || was === event) return [];
    const application = events[at]?.application;
    const earlier = before.events.filter(
      (_, other) => other < at && application !== undefined && events[other]?.application === application,
    );
    const around = { world: before, earlier, sight };
    return [
      ...ALWAYS.filter(([, breaks]) => breaks(event, was)),
      ...SEARCHED.filter(([, breaks]) => breaks(event, was, around)),
    ].map(([name]) => name);
  });
  const taken = after.events.filter(
    ({ d }) => d !== null && d.taken_at !== null && (d.state === 'started' || d.due_at > 0),
  );
  if (taken.length > slots && after.faults === setup.faults)
    found.push('M11 no more first attempts of an endpoint than it has slots, while no dispatcher dies');
  after.months.forEach((now, month) => {
    const used = ({ delivered = 0, reserved = 0 }: Partial<World['months'][number]>) => delivered + reserved;
    // A test that had failed, whose unit was free again, turns out to have been delivered. That is counted.
    const late = after.events.some(
      ({ n }, at) => n?.delivered && before.events[at]?.d === null && !before.events[at].n?.delivered,
    );
    if (used(now) > quota && used(now) > used(before.months[month] ?? {}) && !late)
      found.push('M12 no unit of the quota is used twice');
    const holding = after.events.filter(({ test, d }) => test && d?.reserved_month === month).length;
    if (now.reserved !== holding) found.push('M13 a unit of the quota is reserved by a test under way');
  });
  return found;
}

/** Whether every event has ended. */
export const settledAll = ({ events }: World): boolean => events.every(({ d }) => d === null);
