import { broken, settledAll } from './invariants';
import { beginning, steps, type World, type WorldSetup } from './world';

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

/**
 * Visits every state of a world, nearest first, and holds the invariants against every step. Then it asks
 * whether each state leads to the end of every event on every way on which nothing else goes wrong. It ends
 * with the step that breaks something, whose story is then the shortest.
 * States are known by 52 bits of a hash: the chance that two of a million share one is 1 in 9,000.
 */
export function search(setup: WorldSetup): Found {
  const startedAt = performance.now();
  const known = new Map<number, number>();
  const parents: number[] = [];
  const texts: string[] = [];
  /** Steps that follow while nothing goes wrong: all of one state after those of the state before it. */
  const well: number[] = [];
  const firstWell: number[] = [];
  const settled: boolean[] = [];
  const violations = new Map<string, Violation>();
  let frontier: World[] = [];
  let depth = 0;

  const storyOf = (state: number): string[] =>
    state <= 0 ? [] : [...storyOf(parents[state] ?? 0), texts[state] ?? ''];
  const notice = (invariant: string, story: () => readonly string[]) => {
    if (!violations.has(invariant)) violations.set(invariant, { invariant, story: story() });
  };
  const visit = (world: World, parent: number, text: string, into: World[]): number => {
    const key = hashed(JSON.stringify(world));
    const seen = known.get(key);
    if (seen !== undefined) return seen;
    const state = known.size;
    known.set(key, state);
    parents.push(parent);
    texts.push(text);
    settled.push(settledAll(world));
    into.push(world);
    return state;
  };

  visit(beginning(setup), -1, '', frontier);
  for (let state = 0; frontier.length > 0 && violations.size === 0; depth += 1) {
    const following: World[] = [];
    for (const world of frontier) {
      const all = steps(setup, world);
      const busy = all.some(({ kind }) => kind === 'well');
      firstWell.push(well.length);
      for (const { kind, text, world: next } of all) {
        for (const invariant of broken(setup, world, next))
          notice(invariant, () => [...storyOf(state), text]);
        const reached = visit(next, state, text, following);
        // Time passes when nothing else is left to do.
        if (kind === 'well' || (kind === 'time' && !busy)) well.push(reached);
      }
      state += 1;
    }
    frontier = following;
    if (known.size > MOST_STATES) throw new Error(`${setup.name}: more than ${MOST_STATES} states`);
  }
  firstWell.push(well.length);
  const stuck = violations.size > 0 ? null : firstStuck({ well, firstWell, settled });
  if (stuck !== null)
    notice('M14 every event ends while workers live and the endpoint answers', () => [
      ...storyOf(stuck.state),
      ...stuck.after.map((state) => `then: ${texts[state]}`),
    ]);
  const seconds = (performance.now() - startedAt) / 1_000;
  return { name: setup.name, states: known.size, depth, seconds, violations: [...violations.values()] };
}

interface Graph {
  readonly well: readonly number[];
  readonly firstWell: readonly number[];
  readonly settled: readonly boolean[];
}

/** A state from which a way of well steps never ends: it stops short of the end, or goes round. */
function firstStuck({ well, firstWell, settled }: Graph): { state: number; after: readonly number[] } | null {
  const NEW = 0;
  const OPEN = 1;
  const DONE = 2;
  const colours = new Uint8Array(settled.length);
  for (let root = 0; root < settled.length; root += 1) {
    if (colours[root] !== NEW) continue;
    const path = [root];
    const nexts = [firstWell[root] ?? 0];
    colours[root] = OPEN;
    while (path.length > 0) {
      const state = path.at(-1) ?? 0;
      const next = nexts.at(-1) ?? 0;
      if (settled[state] || next >= (firstWell[state + 1] ?? 0)) {
        if (!settled[state] && firstWell[state] === firstWell[state + 1])
          return { state: root, after: path.slice(1) };
        colours[state] = DONE;
        path.pop();
        nexts.pop();
        continue;
      }
      nexts[nexts.length - 1] = next + 1;
      const reached = well[next] ?? 0;
      // A step may change nothing that is told apart, as time does when nothing is planned.
      if (colours[reached] === OPEN) return { state: root, after: [...path.slice(1), reached] };
      if (colours[reached] === NEW) {
        colours[reached] = OPEN;
        path.push(reached);
        nexts.push(firstWell[reached] ?? 0);
      }
    }
  }
  return null;
}

/** Two 26-bit hashes of a text, as one integer. */
function hashed(text: string): number {
  let one = 0x811c9dc5;
  let other = 0x1234567;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    one = Math.imul(one ^ code, 0x01000193);
    other = Math.imul(other ^ code, 0x85ebca6b) + 0x9e3779b9;
    other ^= other >>> 13;
  }
  one ^= one >>> 15;
  return (one >>> 6) * 2 ** 26 + (other >>> 6);
}
