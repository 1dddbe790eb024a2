import { afterEarlier, hasSlot, unborn, type Done, type Outcome, type Sight, type Terms } from '../rows';
import { QUIET, type Event, type Workflow, type World } from '../world';

/** What a world has, and how often something may go wrong in it. */
export interface WorldSetup {
  readonly name: string;
  readonly events: readonly { readonly test?: true; readonly application?: string }[];
  readonly terms: Terms;
  /** Answers of the receiver. `failed` is a status, a reset or silence. */
  readonly answers: readonly Outcome[];
  /** Steps that go wrong, in all, and which. */
  readonly faults: number;
  readonly may: readonly Fault[];
  /** Orders of operators and partners, in all, and which. */
  readonly orders: number;
  readonly order: readonly Order[];
  /** Most tests in a month. */
  readonly quota?: number;
  /** Slots for first attempts to the endpoint. */
  readonly slots?: number;
}

/**
 * `dies`: a process, with what it was doing; each step in flight has a process of its own, so any number of
 * them may. `unanswered`: a transaction or call is done, and its caller does not learn of it. `late`: one
 * that its caller has given up is done later. `freezes`: a worker that Temporal takes for dead goes on.
 * `slow`: time passes meanwhile. `lost`: Temporal forgets everything. `wake`: a signal does not arrive.
 * `clock`: that of the database jumps, forward or back.
 */
export type Fault = Broken | 'wake' | 'month' | 'busy' | 'ours' | 'expires';
type Broken = 'dies' | 'unanswered' | 'late' | 'freezes' | 'slow' | 'lost' | 'clock';
export type Order =
  'pause' | 'retry_now' | 'cancel' | 'resend' | 'recover' | 'terminate' | 'partner' | 'endpoint';

/** `well`: what happens while nothing goes wrong. `time`: a tick, which waits until no such step is left. */
export interface Step {
  readonly kind: 'well' | 'time' | 'outside' | 'fault' | 'order';
  readonly text: string;
  readonly world: World;
}

export const beginning = ({ events, faults, orders }: WorldSetup): World => ({
  events: events.map(({ test = false }) => ({ ...unborn(test), ...QUIET })),
  endpoint: true,
  partnerPaused: false,
  months: [0, 1].map(() => ({ delivered: 0, reserved: 0 })),
  month: 0,
  faults,
  orders,
});

/** The present is always 0: time passes by moving all moments into the past. */
export const NOW = 0;

/** What processes see of an event, and how they go on. Steps that go wrong, or are ordered, are left out where the world has none. */
export function turnOf(setup: WorldSetup, world: World, at: number, all: Step[]) {
  const { terms, quota = 1, slots = 16 } = setup;
  const [event] = world.events.slice(at) as [Event];
  const units = world.months[world.month];
  const sight: Sight = {
    now: NOW,
    terms,
    endpoint: world.endpoint,
    slotFree: world.events.filter((one) => hasSlot(one, NOW)).length < slots,
    partnerPaused: world.partnerPaused,
    earlier: world.events.filter((_, other) => other < at && related(setup, at, other)),
    month: world.month,
    quotaUsed: units !== undefined && units.delivered + units.reserved >= quota,
  };
  const take = (kind: Step['kind'], text: string, own: Partial<Event>, done: Done | null = null) => {
    const { rows, units: moves = [], later = null, gone = false } = done ?? {};
    const events = world.events.map((one, other) => {
      if (other === at) return { ...event, ...rows, ...own };
      if (later === null || other < at || !related(setup, at, other) || one.d?.taken_at !== null) return one;
      if (later === 'put_off' && one.d.priority < (event.d?.priority ?? 0)) return one;
      return { ...one, d: afterEarlier(later, one.d, event.d?.first_attempt_at ?? null, sight) ?? one.d };
    });
    const months = world.months.map((one, month) =>
      moves
        .filter((move) => move.month === month)
        .reduce((sum, { delivered, reserved }) => added(sum, delivered, reserved), one),
    );
    const endpoint = world.endpoint && !gone;
    all.push(spent(kind, `event ${at + 1}: ${text}`, { ...world, events, months, endpoint }));
  };
  type Taken = [text: string, own: Partial<Event>, done?: Done | null];
  return {
    event,
    sight,
    answers: setup.answers,
    first: at === 0 || world.events[at - 1]?.n !== null,
    well: (...step: Taken) => take('well', ...step),
    outside: (...step: Taken) => take('outside', ...step),
    fault: (which: Fault, ...step: Taken) => mayFail(setup, world, which) && take('fault', ...step),
    order: (which: Order, ...step: Taken) => mayOrder(setup, world, which) && take('order', ...step),
    /** A workflow goes on, with what else changes. */
    goes: (one: Workflow, to: Partial<Workflow>) => ({
      workflows: event.workflows.map((other) => (other === one ? { ...one, ...to } : other)),
    }),
  };
}
export type Turn = ReturnType<typeof turnOf>;

export const related = ({ events }: WorldSetup, one: number, other: number) =>
  events[one]?.application !== undefined && events[one].application === events[other]?.application;
export const mayFail = ({ may }: WorldSetup, { faults }: World, fault: Fault) =>
  faults > 0 && may.includes(fault);
export const mayOrder = ({ order }: WorldSetup, { orders }: World, one: Order) =>
  orders > 0 && order.includes(one);
export const spent = (kind: Step['kind'], text: string, world: World): Step => ({
  kind,
  text,
  world: {
    ...world,
    faults: world.faults - (kind === 'fault' ? 1 : 0),
    orders: world.orders - (kind === 'order' ? 1 : 0),
  },
});
const added = (one: World['months'][number], delivered: number, reserved: number) => ({
  delivered: one.delivered + delivered,
  reserved: one.reserved + reserved,
});
export const withOne = (generations: readonly number[], one: number) =>
  [...new Set([...generations, one])].toSorted((a, b) => a - b);
