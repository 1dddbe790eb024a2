import { begun, change, end, open, record, type Done, type Follows, type Rows } from './rows';
import { aged, moved } from './tools/canonical';
import { NOW, mayFail, mayOrder, spent, turnOf, withOne } from './tools/turn';
import type { Step, Turn, WorldSetup } from './tools/turn';
import { NEW_WORKFLOW, isOver, type Event, type Job, type Workflow, type World } from './world';

/** Every step that may follow. */
export function steps(setup: WorldSetup, world: World): Step[] {
  const all: Step[] = [];
  for (const at of world.events.keys()) {
    const turn = turnOf(setup, world, at, all);
    if (turn.event.n === null) {
      partner(turn);
      continue;
    }
    dispatcher(turn);
    for (const one of turn.event.workflows) workflow(turn, one);
    for (const job of turn.event.jobs) worker(turn, job);
    signals(turn);
    reconciler(turn);
    keeper(turn);
    operators(turn);
  }
  surroundings(setup, world, all);
  return all;
}

function partner({ event, sight, first, outside }: Turn) {
  if (!first || (event.test && (sight.quotaUsed || !sight.endpoint))) return;
  outside('is stored', {}, begun(event, event.test ? sight.month : null, NOW, sight.endpoint));
}

function dispatcher({ event, sight, well, fault }: Turn) {
  const { d, starting, noting, workflows } = event;
  const claimed = change('take', event, sight, { taken_at: NOW, due_at: NOW + sight.terms.lease });
  if (claimed?.d)
    well('a dispatcher claims it', { ...claimed, starting: withOne(starting, claimed.d.generation) });
  for (const generation of starting) {
    const others = starting.filter((other) => other !== generation);
    const there = workflows.some((one) => one.generation === generation);
    const fresh = { ...NEW_WORKFLOW, generation };
    const started = { workflows: there ? workflows : [...workflows, fresh], starting: others };
    const text = `the workflow of generation ${generation}`;
    well(`${text} ${there ? 'runs already' : 'starts'}`, { ...started, noting: withOne(noting, generation) });
    fault('unanswered', `${text} starts, Temporal's answer is lost, and the row is given back`, {
      ...started,
      ...(d?.generation === generation ? change('give_back', event, sight, { due_at: NOW + 1 }) : null),
    });
    fault('dies', 'the dispatcher dies before the start', { starting: others });
  }
  for (const generation of noting) {
    const others = noting.filter((other) => other !== generation);
    const noted = d?.generation === generation ? change('start', event, sight) : null;
    well('the dispatcher notes the start', { ...noted, noting: others });
    fault('dies', 'the dispatcher dies before it has noted the start', { noting: others });
  }
}

/** A workflow, and the transactions that workers make for it. */
function workflow({ event, sight, well, fault, goes }: Turn, one: Workflow) {
  const { generation, number, result } = one;
  const who = `workflow ${generation}`;
  const next = (follow: Follows): Partial<Workflow> => {
    if (follow === 'over') return { at: 'ended' };
    if (follow === 'due' || one.woken) return { at: 'asks', woken: false };
    return { at: 'waits', timer: follow.until };
  };
  /** A call whose answer may be lost, so that it is made again. */
  const call = (text: string, done: Done, then: Partial<Workflow>, own: Partial<Event> = {}) => {
    well(`${who} ${text}`, { ...goes(one, then), ...own }, done);
    if (done.rows !== event)
      fault('unanswered', `${who} ${text}, and the worker does not learn of it`, {}, done);
  };
  if (one.at === 'asks') {
    const opened = open(event, generation, sight);
    const quits = { at: one.cancel ? 'cancels' : 'ended' } as const;
    switch (opened.kind) {
      case 'over':
        return call('asks: it is over', opened, { at: 'ended' });
      case 'wait':
        return call('asks: it has to wait', opened, next({ until: opened.until ?? null }));
      case 'parked':
        return call('asks: the partner is paused', opened, quits);
      case 'refused':
        return call('asks: there is no endpoint, or no unit of the quota', opened, { at: 'refuses' });
      case 'open': {
        const attempt = opened.rows.d?.attempts ?? 0;
        const job: Job = { generation, at: 'opened', number: attempt, result: null, late: false };
        const jobs = [...event.jobs, job];
        call(`asks: attempt ${attempt} begins`, opened, { at: 'sends', number: attempt }, { jobs });
        const requeued = change('requeue', event, sight, { due_at: NOW + 1 });
        const text = `${who} asks: no slot is free for long, and it is queued again`;
        fault('busy', text, { ...requeued, ...goes(one, quits) });
      }
    }
  }
  if (one.at === 'refuses' || one.at === 'cancels') {
    const as = one.at === 'cancels' ? 'cancelled' : event.test ? 'failed' : 'held';
    // Where its next generation would continue, the order to cancel still counts.
    const { state, generation: present } = event.d ?? {};
    const later = one.at === 'cancels' && state === 'queued' && present === generation + 1;
    const done = end(event, later ? present : generation, as, NOW) ?? { rows: event };
    call(`ends without an attempt: ${as}`, done, { at: one.at === 'cancels' ? 'cancelled' : 'ended' });
  }
  if (one.at === 'records' && result !== null) {
    const done = record(event, number, result, sight);
    call(`records attempt ${number} as ${result}`, done, next(done.follows));
    fault('late', `${who}: the record of attempt ${number} hangs, and is made again`, {
      jobs: [...event.jobs, { generation, at: 'recording', number, result, late: true }],
    });
  }
  if (one.at === 'waits') {
    if (one.cancel) well(`${who} is cancelled`, goes(one, { at: 'cancels', cancel: false }));
    else if (one.woken) well(`${who} is woken`, goes(one, { at: 'asks', woken: false }));
    else if (one.timer !== null && one.timer <= NOW) well(`${who}'s timer fires`, goes(one, { at: 'asks' }));
  }
}

/** A worker that makes an attempt. What it has sent it records, also when nobody waits for it any more. */
function worker({ event, sight, well, outside, fault, goes, answers }: Turn, job: Job) {
  const { generation, number, result, late } = job;
  const jobs = event.jobs.filter((other) => other !== job);
  const becomes = (to: Partial<Job>) => ({ jobs: [...jobs, { ...job, ...to }] });
  const awaits = event.workflows.find(
    (one) => one.generation === generation && one.number === number && one.at === 'sends',
  );
  const again = late || awaits === undefined ? {} : goes(awaits, { at: 'asks' });
  if (job.at === 'opened')
    for (const answer of answers) {
      const text = `attempt ${number} is answered: ${answer}`;
      const accepted = event.accepted || answer === 'delivered';
      const own = { accepted, ...becomes({ at: 'answered', result: answer }) };
      if (answer === 'delivered') well(text, own);
      // It spends no step of the ladder, so only the faults bound it.
      else if (answer === 'ours') fault('ours', text, own);
      else outside(text, own);
    }
  if (job.at === 'answered') {
    const received = late || awaits === undefined ? {} : goes(awaits, { at: 'records', result });
    well(`the worker returns the outcome of attempt ${number}`, { jobs, ...received });
    const own = { ...becomes({ at: 'recording', late: true }), ...again };
    fault('late', `the answer of attempt ${number} is recorded late`, own);
  }
  if (job.at === 'recording' && result !== null)
    well(`attempt ${number} is recorded late as ${result}`, { jobs }, record(event, number, result, sight));
  if (late) return;
  fault('dies', `the worker of attempt ${number} dies`, { jobs, ...again });
  const own = { ...becomes({ late: true }), ...again };
  fault('freezes', `the worker of attempt ${number} freezes, and Temporal asks another`, own);
}

function signals({ event, well, fault }: Turn) {
  for (const generation of event.wakes) {
    const wakes = event.wakes.filter((other) => other !== generation);
    const workflows = event.workflows.map((one) =>
      one.generation === generation ? { ...one, woken: true } : one,
    );
    well(`workflow ${generation} receives the wake`, { wakes, workflows });
    fault('wake', `the wake of workflow ${generation} is lost`, { wakes });
  }
}

/** Compares started deliveries with Temporal, and repeats a wake that was lost. */
function reconciler({ event, sight, well, fault }: Turn) {
  const { d, found, wakes, starting } = event;
  if (d?.state === 'started') {
    const present = event.workflows.find((one) => one.generation === d.generation);
    const asleep = present?.at === 'waits' && !present.woken && wakes.length === 0;
    if (d.ordered_at !== null && asleep) well('the sweep repeats the wake', { wakes: [d.generation] });
    const checked = change('check', event, sight);
    if (checked !== null && found === null) {
      const standing = present?.at ?? 'missing';
      const running = present !== undefined && !isOver(present);
      well(`the sweep looks for workflow ${d.generation}: ${running ? 'running' : standing}`, {
        ...checked,
        found: running ? null : { generation: d.generation, standing },
      });
    }
  }
  if (found === null) return;
  const { generation, standing } = found;
  if (standing === 'terminated' || standing === 'cancelled') {
    const done = end(event, generation, standing === 'cancelled' ? 'cancelled' : 'failed', NOW);
    well(`it ends, as its workflow was ${standing}`, { found: null }, done);
  } else {
    const restarted = d?.generation === generation ? change('restart', event, sight) : null;
    if (!restarted?.d) well('it needs no new workflow', { found: null });
    else {
      const text = `generation ${restarted.d.generation} replaces it`;
      const own = { ...restarted, found: null };
      well(text, { ...own, starting: withOne(starting, restarted.d.generation) });
      fault('dies', `${text}, and the worker dies before the start`, own);
    }
  }
  fault('dies', 'the worker dies after the sweep', { found: null });
}

/** Holds what has no endpoint, and releases it. */
function keeper({ event, sight, well, fault }: Turn) {
  const { d } = event;
  const held = d?.state === 'queued' ? change('hold', event, sight) : null;
  if (held !== null) well('is held, as there is no endpoint', held);
  const released = change('release', event, sight, { due_at: NOW });
  if (released !== null) well('is released', released);
  const expired = d && !sight.endpoint ? end(event, d.generation, 'expired', NOW) : null;
  if (expired !== null) fault('expires', 'expires after thirty days', {}, expired);
}

/** An order changes the row, and wakes the workflow after its commit. */
function operators({ event, sight, well, order, goes }: Turn) {
  const { n, d, test } = event;
  const free = !test || (!n?.delivered && !sight.quotaUsed);
  for (const which of ['resend', 'recover'] as const) {
    const priority = which === 'recover' ? 1 : 0;
    const released = change('release', event, sight, { due_at: NOW, priority });
    if (released !== null) order(which, `${which}, while held`, released);
    const again = begun(event, test ? sight.month : null, NOW, true, priority);
    if (d === null && free && sight.endpoint) order(which, which, {}, again);
  }
  if (d === null) return;
  const woken = (changedRows: Rows | null) => ({
    ...changedRows,
    wakes: d.state === 'started' ? withOne(event.wakes, d.generation) : event.wakes,
  });
  const pause = d.paused_at === null ? change('pause', event, sight) : null;
  if (pause !== null) order('pause', 'an operator pauses it', woken(pause));
  const resume = d.paused_at === null ? null : change('resume', event, sight);
  if (resume !== null) well('an operator resumes it', woken(resume));
  const hurried = change('retry_now', event, sight);
  if (hurried !== null) order('retry_now', 'an operator orders an attempt now', woken(hurried));
  const running = event.workflows.find((one) => one.generation === d.generation && !isOver(one));
  if (running !== undefined)
    order('terminate', 'its workflow is terminated in Temporal', goes(running, { at: 'terminated' }));
  if (d.state === 'started' && running !== undefined)
    order('cancel', 'an operator cancels its workflow', goes(running, { cancel: true }));
  else order('cancel', 'an operator cancels it', {}, end(event, d.generation, 'cancelled', NOW));
}

/** Partners, months, Temporal and time. */
function surroundings(setup: WorldSetup, world: World, all: Step[]) {
  const { endpoint, partnerPaused, month, events } = world;
  const add = (kind: Step['kind'], text: string, to: Partial<World>) =>
    all.push(spent(kind, text, { ...world, ...to }));
  if (mayOrder(setup, world, 'partner') && !partnerPaused)
    add('order', 'deliveries to the partner are paused', { partnerPaused: true });
  if (partnerPaused) add('well', 'deliveries to the partner are resumed', { partnerPaused: false });
  if (mayOrder(setup, world, 'endpoint') && endpoint)
    add('order', 'the endpoint is disabled', { endpoint: false });
  if (!endpoint) add('well', 'there is an endpoint again', { endpoint: true });
  if (mayFail(setup, world, 'month') && month === 0) add('fault', 'a month begins', { month: 1 });
  if (mayFail(setup, world, 'lost')) {
    const late = ({ jobs }: Event) => jobs.map((job) => ({ ...job, late: true }));
    add('fault', 'Temporal loses everything', {
      events: events.map((one) => ({ ...one, workflows: [], wakes: [], jobs: late(one) })),
    });
  }
  if (mayFail(setup, world, 'clock')) {
    add('fault', "the database's clock jumps forward", { events: events.map((one) => moved(one, 1)) });
    add('fault', "the database's clock jumps back", { events: events.map((one) => moved(one, -1)) });
  }
  const later = { events: events.map(aged) };
  // A start takes less than a tick, and so do the notes of the dispatcher and what follows a finding.
  const hangs = ({ starting, noting, found }: Event) => starting.length + noting.length > 0 || found !== null;
  if (!events.some(hangs)) add('time', 'time passes', later);
  else if (mayFail(setup, world, 'slow')) add('fault', 'time passes while a start hangs', later);
}
