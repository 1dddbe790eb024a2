import { hash } from 'node:crypto';
import { OF_EVENTS, OF_ROWS, OF_WORLDS } from '../invariants';
import { steps } from '../processes';
import type { World } from '../world';
import { canonical } from './canonical';
import { beginning, related, type Step, type WorldSetup } from './turn';

/** A way into something that may not be. */
interface Violation {
  readonly invariant: string;
  readonly story: readonly string[];
}

export interface Found {
  readonly name: string;
  readonly states: number;
  readonly depth: number;
  readonly seconds: number;
  readonly violations: readonly Violation[];
}

/** More states than this are no small world. */
const MOST_STATES = 3_000_000;

/** A state: how it was reached first, and what follows while nothing goes wrong. */
interface State {
  readonly parent: State | null;
  readonly text: string;
  readonly settled: boolean;
  readonly well: State[];
  mark: 'new' | 'open' | 'done';
}

/**
 * Visits every state of a world, nearest first.
 * @param seen is called with every step, and ends the visit by answering true
 */
export function explore(setup: WorldSetup, seen: (before: World, step: Step, from: State) => boolean) {
  const known = new Map<string, State>();
  let frontier: [World, State][] = [];
  let depth = 0;
  const visit = (world: World, parent: State | null, text: string, into: [World, State][]): State => {
    const key = hash('md5', JSON.stringify(world), 'base64');
    const before = known.get(key);
    if (before !== undefined) return before;
    const state: State = {
      parent,
      text,
      settled: world.events.every(({ d }) => d === null),
      well: [],
      mark: 'new',
    };
    known.set(key, state);
    into.push([world, state]);
    return state;
  };
  visit(beginning(setup), null, '', frontier);
  for (let over = false; frontier.length > 0 && !over; depth += 1) {
    const following: [World, State][] = [];
    for (const [world, state] of frontier) {
      const all = steps(setup, world);
      const busy = all.some(({ kind }) => kind === 'well');
      for (const { kind, text, world: next } of all) {
        const step = { kind, text, world: canonical(next, world, setup) };
        over = seen(world, step, state) || over;
        const reached = visit(step.world, state, text, following);
        // Time passes when nothing else is left to do.
        if (kind === 'well' || (kind === 'time' && !busy)) state.well.push(reached);
      }
    }
    frontier = following;
    if (known.size > MOST_STATES) throw new Error(`${setup.name}: more than ${MOST_STATES} states`);
  }
  return { states: [...known.values()], depth };
}

/** The invariants that the step from one world to another breaks. */
function broken(setup: WorldSetup, before: World, after: World): string[] {
  const ofEvents = after.events.flatMap((event, at) => {
    const was = before.events[at];
    if (was === undefined || was === event) return [];
    const earlier = before.events.filter((_, other) => other < at && related(setup, at, other));
    return [
      ...Object.entries(OF_ROWS).filter(([, breaks]) => breaks(event, was)),
      ...Object.entries(OF_EVENTS).filter(([, breaks]) =>
        breaks(event, was, { world: before, earlier, setup }),
      ),
    ];
  });
  const ofWorld = Object.entries(OF_WORLDS).filter(([, breaks]) => breaks(after, before, setup));
  return [...ofEvents, ...ofWorld].map(([name]) => name);
}

const storyOf = ({ parent, text }: State): string[] => (parent === null ? [] : [...storyOf(parent), text]);

/**
 * Holds the invariants against every step of a world. Then it asks whether each state leads to the end of every event on every way
 * on which nothing else goes wrong. It ends with the step that breaks something, whose story is then the shortest.
 */
export function search(setup: WorldSetup): Found {
  const startedAt = performance.now();
  const violations = new Map<string, Violation>();
  const { states, depth } = explore(setup, (before, { text, world }, from) => {
    for (const invariant of broken(setup, before, world))
      if (!violations.has(invariant))
        violations.set(invariant, { invariant, story: [...storyOf(from), text] });
    return violations.size > 0;
  });
  const stuck = violations.size > 0 ? null : firstStuck(states);
  if (stuck !== null) {
    const invariant = 'M16 every event ends while workers live and the endpoint answers';
    const [first, ...after] = stuck as [State, ...State[]];
    violations.set(invariant, {
      invariant,
      story: [...storyOf(first), ...after.map(({ text }) => `then: ${text}`)],
    });
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  return { name: setup.name, states: states.length, depth, seconds, violations: [...violations.values()] };
}

/** A way of well steps that never ends: it stops short of the end, or goes round. */
function firstStuck(states: readonly State[]): State[] | null {
  for (const root of states) {
    if (root.mark !== 'new') continue;
    root.mark = 'open';
    const path: { readonly state: State; next: number }[] = [{ state: root, next: 0 }];
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const { state } = last;
      const reached = state.settled ? undefined : state.well[last.next++];
      if (!state.settled && state.well.length === 0) return path.map((one) => one.state);
      if (reached === undefined) {
        state.mark = 'done';
        path.pop();
        // A step may change nothing that is told apart, as time does when nothing is planned.
      } else if (reached.mark === 'open') return [...path.map((one) => one.state), reached];
      else if (reached.mark === 'new') {
        reached.mark = 'open';
        path.push({ state: reached, next: 0 });
      }
    }
  }
  return null;
}
