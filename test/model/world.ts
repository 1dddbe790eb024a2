import { changed, created, end, follows, hasSlot, mayTake, open, record, resent } from './rows';
import type { Delivery, Follows, Moment, Outcome, Rows, Settled, Sight, Terms } from './rows';

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
 * `lost`: Temporal forgets everything. `clock`: that of the database jumps, forward or back.
 */
export type Fault =
  | 'dies'
  | 'unanswered'
  | 'late'
  | 'freezes'
  | 'lost'
  | 'clock'
  | 'wake'
  | 'month'
  | 'busy'
  | 'ours'
  | 'expires'
  | 'slow';
export type Order = 'pause' | 'retry_now' | 'cancel' | 'resend' | 'terminate' | 'partner' | 'endpoint';

/** A workflow in Temporal. `woken`: a signal has come that it has not looked at. */
interface Workflow {
  readonly generation: number;
  readonly at:
    'asks' | 'sends' | 'refuses' | 'records' | 'waits' | 'cancels' | 'ended' | 'terminated' | 'cancelled';
  /** Of the attempt under way. */
  readonly number: number;
  readonly result: Outcome | null;
  readonly timer: Moment;
  readonly woken: boolean;
  readonly cancel: boolean;
}

const isOver = ({ at }: Workflow) => at === 'ended' || at === 'terminated' || at === 'cancelled';

/** What a worker does for a workflow. One that Temporal has given up is `late`. */
interface Job {
  readonly generation: number;
  readonly at: 'opened' | 'answered' | 'recording';
  readonly number: number;
  readonly result: Outcome | null;
  readonly late: boolean;
}

/** An event with what is in flight for it. */
export interface Event extends Rows {
  /** Generations whose workflow a dispatcher is about to start, and those that it has started. */
  readonly starting: readonly number[];
  readonly noting: readonly number[];
  readonly workflows: readonly Workflow[];
  readonly jobs: readonly Job[];
  /** Generations to which a wake is on its way. */
  readonly wakes: readonly number[];
  /** What the reconciler has found about a generation. */
  readonly found: { readonly generation: number; readonly standing: Workflow['at'] | 'missing' } | null;
  /** Known to nobody in the service: its receiver has answered 2xx; later events may go before it. */
  readonly accepted: boolean;
  readonly passed: boolean;
}

export interface World {
  readonly events: readonly Event[];
  readonly endpoint: boolean;
  readonly partnerPaused: boolean;
  /** Tests by month: the present one first, and the one before. */
  readonly months: readonly { readonly delivered: number; readonly reserved: number }[];
  readonly month: number;
  readonly faults: number;
  readonly orders: number;
}

/** `well`: what happens while nothing goes wrong. `time`: a tick, which waits until no such step is left. */
export interface Step {
  readonly kind: 'well' | 'time' | 'world' | 'fault' | 'order';
  readonly text: string;
  readonly world: World;
}

export const beginning = ({ events, faults, orders }: WorldSetup): World => ({
  events: events.map(({ test = false }) => ({
    test,
    n: null,
    d: null,
    attempts: [],
    counted: { delivered: 0, failed: 0 },
    starting: [],
    noting: [],
    workflows: [],
    jobs: [],
    wakes: [],
    found: null,
    accepted: false,
    passed: false,
  })),
  endpoint: true,
  partnerPaused: false,
  months: [0, 1].map(() => ({ delivered: 0, reserved: 0 })),
  month: 0,
  faults,
  orders,
});

/** The present is always 0: time passes by moving all moments into the past. */
const NOW = 0;

/** Every step that may follow. */
export function steps(setup: WorldSetup, world: World): Step[] {
  const { terms, answers, quota = 1, slots = 16 } = setup;
  const sight: Sight = { now: NOW, terms, endpoint: world.endpoint, partnerPaused: world.partnerPaused };
  const all: Step[] = [];
  const mayFail = (fault: Fault) => world.faults > 0 && setup.may.includes(fault);
  const mayOrder = (order: Order) => world.orders > 0 && setup.order.includes(order);
  const earlierOf = (at: number) =>
    world.events.filter(
      (_, other) =>
        other < at &&
        setup.events[other]?.application !== undefined &&
        setup.events[other]?.application === setup.events[at]?.application,
    );

  const add = (kind: Step['kind'], text: string, next: World): void => {
    const faults = next.faults - (kind === 'fault' ? 1 : 0);
    const orders = next.orders - (kind === 'order' ? 1 : 0);
    const events = next.events.map((one, at) => (one === world.events[at] ? one : canonical(one, terms)));
    all.push({ kind, text, world: { ...next, events, faults, orders } });
  };

  for (const [at, event] of world.events.entries()) {
    const name = `event ${at + 1}`;
    const { n, d } = event;
    const put = (change: Partial<Event>, base: World = world): World => ({
      ...base,
      events: base.events.map((one, other) => (other === at ? { ...one, ...change } : one)),
    });
    const take = (kind: Step['kind'], text: string, change: Partial<Event>, base?: World) =>
      add(kind, `${name}: ${text}`, put(change, base));
    const workflow = (one: Workflow, change: Partial<Workflow>) => ({
      workflows: event.workflows.map((other) => (other === one ? { ...one, ...change } : other)),
    });
    const without = (job: Job) => event.jobs.filter((one) => one !== job);
    const month = (units: number, delivered = 0, of = world.month, base = world): World => ({
      ...base,
      months: base.months.map((one, nth) =>
        nth === of && event.test
          ? { delivered: one.delivered + delivered, reserved: one.reserved + units }
          : one,
      ),
    });
    /** What such a transaction changes beside the rows of its event. */
    const settled = ({ later, counts, frees, gone }: Omit<Settled, 'rows'>): World => {
      const counted = counts === null ? world : month(0, 1, counts);
      const base = frees === null ? counted : month(-1, 0, frees, counted);
      return {
        ...base,
        endpoint: base.endpoint && !gone,
        events: base.events.map((one, other) => {
          const waits =
            other > at &&
            earlierOf(other).includes(event) &&
            one.d?.state === 'queued' &&
            one.d.taken_at === null;
          if (!waits || later === null || one.d === null) return one;
          const due = later === 'due_now' ? NOW : (d?.first_attempt_at ?? NOW) + terms.orderWait;
          return { ...one, d: changed(later, one.d, NOW, later === 'put_off' ? { due_at: due } : {}) };
        }),
      };
    };

    if (n === null) {
      const units = world.months[world.month];
      const full = event.test && units !== undefined && units.delivered + units.reserved >= quota;
      const first = at === 0 || world.events[at - 1]?.n !== null;
      if (first && !full && (world.endpoint || !event.test))
        take(
          'world',
          'is stored',
          created(event, NOW, event.test ? world.month : null, world.endpoint),
          month(1),
        );
      continue;
    }

    // The dispatcher.
    const used = world.events.filter((one) => hasSlot(one, NOW)).length;
    if (d !== null && mayTake(event, earlierOf(at), sight) && used < slots) {
      const row = changed('take', d, NOW, { taken_at: NOW, due_at: NOW + terms.lease });
      take('well', 'a dispatcher claims it', { d: row, starting: withOne(event.starting, d.generation) });
    }
    event.starting.forEach((generation, nth) => {
      const starting = event.starting.filter((_, other) => other !== nth);
      const there = event.workflows.some((one) => one.generation === generation);
      const begun: Workflow = {
        generation,
        at: 'asks',
        number: 0,
        result: null,
        timer: null,
        woken: false,
        cancel: false,
      };
      const workflows = there ? event.workflows : [...event.workflows, begun];
      take('well', `the workflow of generation ${generation} ${there ? 'runs already' : 'starts'}`, {
        workflows,
        starting,
        noting: withOne(event.noting, generation),
      });
      if (mayFail('unanswered')) {
        const row = d && (changed('give_back', d, NOW, { due_at: NOW + 1 }) ?? d);
        take(
          'fault',
          `the workflow of generation ${generation} starts, Temporal's answer is lost, and the row is given back`,
          { workflows, starting, d: row },
        );
      }
      if (mayFail('dies')) take('fault', 'the dispatcher dies before the start', { starting });
    });
    event.noting.forEach((generation, nth) => {
      const noting = event.noting.filter((_, other) => other !== nth);
      const row = d !== null && d.generation === generation ? changed('start', d, NOW) : null;
      take('well', 'the dispatcher notes the start', { noting, d: row ?? d });
      if (mayFail('dies')) take('fault', 'the dispatcher dies before it has noted the start', { noting });
    });

    // Workflows, and the activities that workers run for them.
    for (const one of event.workflows) {
      const { generation } = one;
      const who = `workflow ${generation}`;
      const goesOn = (next: Follows): Partial<Workflow> => {
        if (next === 'over') return { at: 'ended' };
        if (next === 'due' || one.woken) return { at: 'asks', woken: false };
        return { at: 'waits', timer: next.until };
      };
      if (one.at === 'asks') {
        // The unit of a test moves to the month of the attempt.
        const units = world.months[world.month];
        const moves =
          event.test && d !== null && d.reserved_month !== null && d.reserved_month !== world.month;
        const full = moves && units !== undefined && units.delivered + units.reserved >= quota;
        const opened =
          full && follows(event, generation, NOW) === 'due' && !sight.partnerPaused
            ? null
            : open(event, generation, event.test ? world.month : null, sight);
        if (opened === null)
          take('well', `${who} asks: the month has no unit left for it`, workflow(one, { at: 'refuses' }));
        else if (opened.kind === 'open') {
          const base = moves ? month(1, 0, world.month, month(-1, 0, d?.reserved_month ?? 0)) : world;
          const { number, rows } = opened;
          const job: Job = { generation, at: 'opened', number, result: null, late: false };
          take(
            'well',
            `${who} asks: attempt ${number} begins`,
            { ...rows, ...workflow(one, { at: 'sends', number }), jobs: [...event.jobs, job] },
            base,
          );
          if (mayFail('unanswered'))
            take(
              'fault',
              `${who} asks: attempt ${number} is stored, and the worker does not learn of it`,
              rows,
              base,
            );
          if (mayFail('busy') && d !== null) {
            const row = changed('requeue', d, NOW, { due_at: NOW + 1 });
            take('fault', `${who} asks: no slot is free for long, and it is queued again`, {
              d: row,
              ...workflow(one, { at: one.cancel ? 'cancels' : 'ended' }),
            });
          }
        } else {
          const { kind, rows } = opened;
          const then: Partial<Workflow> =
            kind === 'wait'
              ? goesOn({ until: opened.until })
              : {
                  at: kind === 'refused' ? 'refuses' : kind === 'parked' && one.cancel ? 'cancels' : 'ended',
                };
          const what = {
            wait: 'it has to wait',
            over: 'it is over',
            parked: 'the partner is paused',
            refused: 'there is no endpoint',
          }[kind];
          take('well', `${who} asks: ${what}`, { ...rows, ...workflow(one, then) });
          if (mayFail('unanswered') && rows !== event)
            take('fault', `${who} asks: ${what}, and the worker does not learn of it`, rows);
        }
      }
      if (one.at === 'refuses' || one.at === 'cancels') {
        const as = one.at === 'cancels' ? 'cancelled' : event.test ? 'failed' : 'held';
        // Where its next generation would continue, the order to cancel still counts.
        const next = one.at === 'cancels' && d?.state === 'queued' && d.generation === generation + 1 ? 1 : 0;
        const result = end(event, generation + next, as, NOW);
        const base = result === null ? world : settled(result);
        const then = one.at === 'cancels' ? 'cancelled' : 'ended';
        take(
          'well',
          `${who} ends without an attempt: ${as}`,
          { ...result?.rows, ...workflow(one, { at: then }) },
          base,
        );
        if (mayFail('unanswered') && result !== null)
          take('fault', `${who}: ${as} is stored, and the worker does not learn of it`, result.rows, base);
      }
      if (one.at === 'records' && one.result !== null) {
        const { rows, follows: next, ...rest } = record(event, one.number, one.result, sight);
        const what = `${who} records attempt ${one.number} as ${one.result}`;
        const base = settled(rest);
        take('well', what, { ...rows, ...workflow(one, goesOn(next)) }, base);
        if (mayFail('unanswered')) take('fault', `${what}, and the worker does not learn of it`, rows, base);
        if (mayFail('late')) {
          const job: Job = {
            generation,
            at: 'recording',
            number: one.number,
            result: one.result,
            late: true,
          };
          take('fault', `${who}: the record of attempt ${one.number} hangs, and is made again`, {
            jobs: [...event.jobs, job],
          });
        }
      }
      if (one.at === 'waits') {
        if (one.cancel) take('well', `${who} is cancelled`, workflow(one, { at: 'cancels', cancel: false }));
        else if (one.woken) take('well', `${who} is woken`, workflow(one, { at: 'asks', woken: false }));
        else if (one.timer !== null && one.timer <= NOW)
          take('well', `${who}'s timer fires`, workflow(one, { at: 'asks' }));
      }
    }
    for (const job of event.jobs) {
      const { generation, number } = job;
      const one = event.workflows.find(
        (other) => other.generation === generation && other.number === number && other.at === 'sends',
      );
      const repeats = job.late || one === undefined ? {} : workflow(one, { at: 'asks' });
      if (job.at === 'opened') {
        for (const result of answers) {
          // It spends no step of the ladder, so only the faults bound it.
          if (result === 'ours' && !mayFail('ours')) continue;
          const accepted = event.accepted || result === 'delivered';
          const answered: Job = { ...job, at: 'answered', result };
          take(
            result === 'delivered' ? 'well' : result === 'ours' ? 'fault' : 'world',
            `attempt ${number} is answered: ${result}`,
            { accepted, jobs: [...without(job), answered] },
          );
        }
        if (mayFail('dies') && !job.late)
          take('fault', `the worker dies before attempt ${number} is sent`, {
            jobs: without(job),
            ...repeats,
          });
      }
      if (job.at === 'answered') {
        if (job.late || one === undefined)
          take('well', `a worker that Temporal has given up ends attempt ${number}`, { jobs: without(job) });
        else
          take('well', `workflow ${generation} receives the outcome`, {
            jobs: without(job),
            ...workflow(one, { at: 'records', result: job.result }),
          });
        if (mayFail('dies') && !job.late)
          take('fault', `the worker dies after attempt ${number} was answered`, {
            jobs: without(job),
            ...repeats,
          });
        // A worker records what it has sent, also when nobody waits for it any more.
        if (mayFail('late'))
          take('fault', `the answer of attempt ${number} is recorded late`, {
            jobs: [...without(job), { ...job, at: 'recording', late: true }],
            ...repeats,
          });
      }
      if (mayFail('freezes') && !job.late)
        take('fault', `the worker of attempt ${number} freezes, and Temporal asks another`, {
          jobs: [...without(job), { ...job, late: true }],
          ...repeats,
        });
      if (job.at === 'recording' && job.result !== null) {
        const { rows, follows: _, ...rest } = record(event, number, job.result, sight);
        take(
          'well',
          `attempt ${number} is recorded late as ${job.result}`,
          { ...rows, jobs: without(job) },
          settled(rest),
        );
      }
    }

    // Signals.
    event.wakes.forEach((generation, nth) => {
      const wakes = event.wakes.filter((_, other) => other !== nth);
      const workflows = event.workflows.map((one) =>
        one.generation === generation ? { ...one, woken: true } : one,
      );
      take('well', `workflow ${generation} receives the wake`, { wakes, workflows });
      if (mayFail('wake')) take('fault', `the wake of workflow ${generation} is lost`, { wakes });
    });

    // The reconciler, which also repeats a wake that was lost.
    const present = event.workflows.find((one) => one.generation === d?.generation);
    if (d?.state === 'started') {
      const asleep = present?.at === 'waits' && !present.woken && event.wakes.length === 0;
      if (d.ordered_at !== null && asleep)
        take('well', 'the sweep repeats the wake', { wakes: [d.generation] });
      if ((d.checked_at ?? d.started_at ?? -1e9) <= NOW - terms.checkAfter && event.found === null) {
        const standing: NonNullable<Event['found']>['standing'] = present?.at ?? 'missing';
        const running = present !== undefined && !isOver(present);
        const found = running ? null : { generation: d.generation, standing };
        take('well', `the sweep looks for workflow ${d.generation}: ${running ? 'running' : standing}`, {
          d: changed('check', d, NOW),
          found,
        });
      }
    }
    if (event.found !== null) {
      const { generation, standing } = event.found;
      if (standing === 'terminated' || standing === 'cancelled') {
        const result = end(event, generation, standing === 'cancelled' ? 'cancelled' : 'failed', NOW);
        take(
          'well',
          `it ends, as its workflow was ${standing}`,
          { ...result?.rows, found: null },
          result === null ? world : settled(result),
        );
      } else {
        const row = d?.generation === generation ? changed('restart', d, NOW) : null;
        if (row === null) take('well', 'it needs no new workflow', { found: null });
        else {
          take('well', `generation ${row.generation} replaces it`, {
            d: row,
            found: null,
            starting: withOne(event.starting, row.generation),
          });
          if (mayFail('dies'))
            take('fault', `generation ${row.generation} replaces it, and the worker dies before the start`, {
              d: row,
              found: null,
            });
        }
      }
      if (mayFail('dies')) take('fault', 'the worker dies after the sweep', { found: null });
    }

    // The keeper.
    if (d !== null && !event.test && d.state === 'queued' && !world.endpoint) {
      const row = changed('hold', d, NOW);
      take('well', 'is held, as there is no endpoint', {
        d: row,
        attempts: event.attempts.map((one) => ({ ...one, outcome: one.outcome ?? 'unknown' })),
      });
    }
    if (d?.state === 'held') {
      if (world.endpoint) take('well', 'is released', { d: changed('release', d, NOW, { due_at: NOW }) });
      else if (mayFail('expires')) {
        const result = end(event, d.generation, 'expired', NOW);
        if (result !== null) take('fault', 'expires after thirty days', result.rows, settled(result));
      }
    }

    // Orders: an update, and a wake after its commit.
    const ordered = (text: string, row: Delivery | null, kind: Step['kind'] = 'order') => {
      if (row !== null)
        take(kind, text, {
          d: row,
          wakes: row.state === 'started' ? withOne(event.wakes, row.generation) : event.wakes,
        });
    };
    if (d !== null) {
      if (mayOrder('pause') && d.paused_at === null)
        ordered('an operator pauses it', changed('pause', d, NOW));
      if (d.paused_at !== null) ordered('an operator resumes it', changed('resume', d, NOW), 'well');
      if (mayOrder('retry_now')) ordered('an operator orders an attempt now', changed('retry_now', d, NOW));
      if (mayOrder('cancel')) {
        const running = present !== undefined && !isOver(present);
        if (d.state === 'started' && running)
          take('order', 'an operator cancels its workflow', workflow(present, { cancel: true }));
        else {
          const result = end(event, d.generation, 'cancelled', NOW);
          if (result !== null) take('order', 'an operator cancels it', result.rows, settled(result));
        }
      }
      if (mayOrder('terminate') && present !== undefined && !isOver(present))
        take(
          'order',
          'an operator terminates its workflow in Temporal',
          workflow(present, { at: 'terminated' }),
        );
    }
    if (mayOrder('resend') && world.endpoint && (d === null || d.state === 'held')) {
      const units = world.months[world.month];
      const free =
        !event.test || (!n.delivered && units !== undefined && units.delivered + units.reserved < quota);
      if (d !== null)
        take('order', 'is resent while held', { d: changed('release', d, NOW, { due_at: NOW }) });
      else if (free)
        take('order', 'is resent', resent(event, NOW, event.test ? world.month : null), month(1));
    }
  }

  if (mayOrder('partner') && !world.partnerPaused)
    add('order', 'deliveries to the partner are paused', { ...world, partnerPaused: true });
  if (world.partnerPaused)
    add('well', 'deliveries to the partner are resumed', { ...world, partnerPaused: false });
  if (mayOrder('endpoint') && world.endpoint)
    add('order', 'the endpoint is disabled', { ...world, endpoint: false });
  if (!world.endpoint) add('well', 'there is an endpoint again', { ...world, endpoint: true });
  if (mayFail('month') && world.month === 0) add('fault', 'a month begins', { ...world, month: 1 });
  if (mayFail('lost')) {
    const lost = (one: Event): Event => ({
      ...one,
      workflows: [],
      wakes: [],
      jobs: one.jobs.map((job) => ({ ...job, late: true })),
    });
    add('fault', 'Temporal loses everything', { ...world, events: world.events.map(lost) });
  }
  if (mayFail('clock')) {
    add('fault', "the database's clock jumps forward", shifted(world, 1, { timers: false }));
    add('fault', "the database's clock jumps back", shifted(world, -1, { timers: false }));
  }
  // A start takes less than a tick, and so do the notes of the dispatcher and what follows a finding.
  const hangs = world.events.some(
    ({ starting, noting, found }) => starting.length + noting.length > 0 || found !== null,
  );
  if (!hangs) add('time', 'time passes', shifted(world, 1, { timers: true }));
  else if (mayFail('slow'))
    add('fault', 'time passes while a start hangs', shifted(world, 1, { timers: true }));
  return all;
}

const withOne = (generations: readonly number[], one: number) =>
  [...new Set([...generations, one])].toSorted((a, b) => a - b);

/** All moments a tick nearer, or further away. `timers` are Temporal's, which has a clock of its own. */
function shifted(world: World, by: number, { timers }: { timers: boolean }): World {
  const move = (moment: Moment) => (moment === null ? null : moment - by);
  const row = (d: Delivery): Delivery => ({
    ...d,
    due_at: d.due_at - by,
    first_attempt_at: move(d.first_attempt_at),
    next_attempt_at: move(d.next_attempt_at),
    checked_at: move(d.checked_at),
    started_at: move(d.started_at),
  });
  const events = world.events.map((one) => ({
    ...one,
    d: one.d && row(one.d),
    workflows: timers ? one.workflows.map((each) => ({ ...each, timer: move(each.timer) })) : one.workflows,
  }));
  return { ...world, events };
}

const atLeast = (moment: Moment, least: number): Moment => (moment === null ? null : Math.max(moment, least));

/** The same event without what makes no difference any more, so that equal worlds are found equal. */
function canonical(event: Event, { orderWait, checkAfter }: Terms): Event {
  const { n, d, attempts, jobs } = event;
  const order = d?.first_attempt_at ?? null;
  const workflows = event.workflows
    .filter(
      (one) => !isOver(one) || one.generation === d?.generation || event.starting.includes(one.generation),
    )
    .map((one) => ({
      ...one,
      number: one.at === 'records' || one.at === 'sends' ? one.number : 0,
      result: one.at === 'records' ? one.result : null,
      timer: one.at === 'waits' ? atLeast(one.timer, NOW) : null,
      woken: one.woken && !isOver(one),
      cancel: one.cancel && !isOver(one),
    }));
  // Of closed attempts only those that somebody may still report.
  const known = attempts.filter(
    (one) => one.outcome === null || [...jobs, ...workflows].some(({ number }) => number === one.number),
  );
  const began = attempts.find(({ outcome }) => outcome === null)?.began ?? null;
  return {
    ...event,
    passed: event.passed || (n?.end ?? null) !== null || (order !== null && order <= NOW - orderWait),
    attempts: known.map((one) => ({ ...one, began: -2 })),
    workflows,
    d: d && {
      ...d,
      due_at: d.state === 'queued' ? Math.max(d.due_at, NOW) : NOW,
      taken_at: past(d.taken_at),
      started_at: d.checked_at === null ? atLeast(d.started_at, NOW - checkAfter) : null,
      first_attempt_at: atLeast(order, NOW - orderWait),
      next_attempt_at: atLeast(d.next_attempt_at, NOW),
      // Before or during the attempt under way.
      hurried_at: d.hurried_at !== null && began !== null && d.hurried_at <= began ? -3 : past(d.hurried_at),
      ordered_at: past(d.ordered_at),
      paused_at: past(d.paused_at),
      held_at: past(d.held_at),
      checked_at: atLeast(d.checked_at, NOW - checkAfter),
    },
  };
}

const past = (moment: Moment): Moment => (moment === null ? null : -1);
