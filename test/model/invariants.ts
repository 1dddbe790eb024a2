import { blocks, follows, hasSlot } from './rows';
import type { Rows } from './rows';
import { related, type WorldSetup } from './tools/turn';
import type { Event, World } from './world';

const underWay = ({ attempts }: Rows) => attempts.filter(({ outcome }) => outcome === null);
const begins = (after: Rows, before: Rows) =>
  before.d !== null && (after.d?.attempts ?? 0) > before.d.attempts && underWay(after).length > 0;
const generationOf = ({ n, d }: Rows) => d?.generation ?? n?.generation ?? 0;

type Breaks<Of, More extends readonly unknown[] = []> = (after: Of, before: Of, ...more: More) => boolean;

/** What holds for the rows of an event and each step, in the search and in every trace. Each says whether it is broken. */
export const OF_ROWS: Readonly<Record<string, Breaks<Rows>>> = {
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

/** What the search knows beside the rows of an event: pauses, plans, earlier events, the receiver. */
const OF_EVENTS: Readonly<Record<string, Breaks<Event, [World, readonly Event[], WorldSetup]>>> = {
  'M8 what is delivered was answered 2xx': ({ n, accepted }) => n !== null && n.delivered && !accepted,
  'M9 no attempt begins during a pause, or earlier than planned, unless it was ordered': (
    after,
    before,
    { partnerPaused },
  ) => begins(after, before) && (partnerPaused || follows(before, generationOf(before), 0) !== 'due'),
  'M10 no event overtakes an earlier one of its application': (after, before, _world, earlier, { terms }) =>
    begins(after, before) &&
    after.d?.attempts === 1 &&
    earlier.some((one) => blocks(one, { now: 0, terms }) && !one.passed),
};

/** What holds for the whole of a world. */
const OF_WORLDS: Readonly<Record<string, Breaks<World, [WorldSetup]>>> = {
  'M11 no more first attempts of an endpoint than it has slots, while no dispatcher dies': (
    { events, faults },
    _before,
    setup,
  ) => faults === setup.faults && events.filter((one) => hasSlot(one, 0)).length > (setup.slots ?? 16),
  // A test that had failed, whose unit was free again, may turn out to have been delivered. That is counted.
  'M12 no unit of the quota is used twice': (after, before, { quota = 1 }) => {
    const used = ({ months }: World) => months.map(({ delivered, reserved }) => delivered + reserved);
    const over = used(after).some((now, month) => now > quota && now > (used(before)[month] ?? 0));
    const late = after.events.some(
      ({ n }, at) => n?.delivered && before.events[at]?.d === null && !before.events[at].n?.delivered,
    );
    return over && !late;
  },
  'M13 a unit of the quota is reserved by a test under way': ({ months, events }) =>
    months.some(
      ({ reserved }, month) => reserved !== events.filter(({ d }) => d?.reserved_month === month).length,
    ),
};

/** The invariants that the step from one world to another breaks. */
export function broken(setup: WorldSetup, before: World, after: World): string[] {
  const ofEvents = after.events.flatMap((event, at) => {
    const was = before.events[at];
    if (was === undefined || was === event) return [];
    const earlier = before.events.filter((_, other) => other < at && related(setup, at, other));
    return [
      ...Object.entries(OF_ROWS).filter(([, breaks]) => breaks(event, was)),
      ...Object.entries(OF_EVENTS).filter(([, breaks]) => breaks(event, was, before, earlier, setup)),
    ];
  });
  const ofWorld = Object.entries(OF_WORLDS).filter(([, breaks]) => breaks(after, before, setup));
  return [...ofEvents, ...ofWorld].map(([name]) => name);
}

/** Whether every event has ended; M14 asks whether each way leads there. */
export const settledAll = ({ events }: World): boolean => events.every(({ d }) => d === null);
