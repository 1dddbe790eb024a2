import { blocks, follows, hasSlot, type Rows } from './rows';
import type { WorldSetup } from './tools/turn';
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

/** What the search knows beside the rows of an event: the world, earlier events of its application. */
export interface Beside {
  readonly world: World;
  readonly earlier: readonly Event[];
  readonly setup: WorldSetup;
}
export const OF_EVENTS: Readonly<Record<string, Breaks<Event, [Beside]>>> = {
  'M8 what is delivered was answered 2xx': ({ n, accepted }) => n !== null && n.delivered && !accepted,
  'M9 no attempt begins in a pause, or before its time, unless ordered': (after, before, { world }) =>
    begins(after, before) && (world.partnerPaused || follows(before, generationOf(before), 0) !== 'due'),
  'M10 no event overtakes an earlier one of its application': (after, before, { earlier, setup }) =>
    begins(after, before) &&
    after.d?.attempts === 1 &&
    earlier.some((one) => blocks(one, before.d?.priority ?? 0, { ...setup, now: 0 }) && !one.passed),
  'M11 after a failed attempt the next is planned by the ladder': (after, before, { setup: { terms } }) => {
    const [step, was] = [after.d?.step ?? 0, before.d?.step ?? 0];
    return step > was && (after.d?.next_attempt_at ?? 0) < (terms.ladder[step] ?? Infinity);
  },
  'M12 while nothing fails, the sweep replaces no workflow': (after, { d }, { world, setup }) =>
    world.faults === setup.faults &&
    d?.state === 'started' &&
    after.d?.state === 'started' &&
    after.d.generation > d.generation,
};

/** What holds for the whole of a world. */
export const OF_WORLDS: Readonly<Record<string, Breaks<World, [WorldSetup]>>> = {
  'M13 no more first attempts than slots, while no dispatcher dies': ({ events, faults }, _before, setup) =>
    faults === setup.faults && events.filter((one) => hasSlot(one, 0)).length > (setup.slots ?? 16),
  'M14 a unit of the quota is reserved only while one is free': ({ months }, before, { quota = 1 }) =>
    months.some(({ delivered, reserved }, month) => {
      const was = before.months[month]?.reserved ?? 0;
      return reserved > was && delivered + reserved > quota;
    }),
  'M15 each unit reserved is of a test under way': ({ months, events }) =>
    months.some(
      ({ reserved }, month) => reserved !== events.filter(({ d }) => d?.reserved_month === month).length,
    ),
};
