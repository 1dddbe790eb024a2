import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beginning, steps, type Event, type World, type WorldSetup } from './world';

/** One event, every answer, one order, and one thing that goes wrong. */
const SETUP: WorldSetup = {
  name: 'picture',
  events: [{}],
  terms: { lease: 1, orderWait: 1, checkAfter: 1, ladder: [0, 1], testLadder: [0, 1] },
  answers: ['delivered', 'failed', 'gone'],
  faults: 1,
  may: ['dies', 'expires'],
  orders: 1,
  order: ['pause', 'cancel', 'resend', 'endpoint', 'partner'],
};

function stateOf({ n, d, starting, attempts }: Event): string {
  if (n === null) return '[*]';
  if (d === null) return n.end ?? '';
  if (d.state === 'held') return 'held';
  if (attempts.some(({ outcome }) => outcome === null)) return 'sending';
  if (d.state === 'started') return d.paused_at === null ? 'waiting' : 'paused';
  return starting.length > 0 || d.taken_at !== null ? 'claimed' : 'queued';
}

const LABELS: readonly (readonly [RegExp, string])[] = [
  [/is stored$/, 'stored'],
  [/claims it/, 'claim'],
  [/attempt \d+ begins/, 'attempt'],
  [/as (delivered|failed|gone)/, 'record'],
  [/notes the start/, 'start noted'],
  [/has to wait/, 'asks, not due'],
  [/partner is paused/, 'asks, partner paused'],
  [/without an attempt: held|is held/, 'no endpoint'],
  [/released|resent/, 'released, resent'],
  [/cancel/, 'cancelled'],
  [/expires/, '30 days'],
  [/pauses/, 'pause'],
  [/resumes/, 'resume'],
  [/replaces it/, 'restart'],
];

const PAGE = join(__dirname, '../../docs/model.md');

/**
 * The page with its diagram: the states of an event, and what leads from one to the other, as the search finds them. `npm run guide`
 * writes it, `npm run test:model` compares.
 */
export function page(): { readonly now: string; readonly wanted: string } {
  const block = /(?<=```mermaid\nstateDiagram-v2\n {2}%% made from test\/model\n)[^`]*/;
  const now = readFileSync(PAGE, 'utf8');
  if (!block.test(now)) throw new Error('The page has no diagram made from test/model.');
  return { now, wanted: now.replace(block, () => picture()) };
}

function picture(): string {
  const arrows = new Map<string, Set<string>>();
  const known = new Set<string>();
  let frontier: World[] = [beginning(SETUP)];
  while (frontier.length > 0) {
    const following: World[] = [];
    for (const world of frontier) {
      for (const { text, world: next } of steps(SETUP, world)) {
        const [from, to] = [world, next].map(({ events: [event] }) => (event ? stateOf(event) : ''));
        const label = LABELS.find(([form]) => form.test(text))?.[1];
        if (from !== to && label !== undefined) {
          const arrow = `${from} --> ${to}`;
          arrows.set(arrow, (arrows.get(arrow) ?? new Set()).add(label));
        }
        const key = JSON.stringify(next);
        if (known.has(key)) continue;
        known.add(key);
        following.push(next);
      }
    }
    frontier = following;
  }
  return [...arrows]
    .map(([arrow, labels]) => `  ${arrow}: ${[...labels].toSorted().join(', ')}\n`)
    .toSorted()
    .join('');
}

if (require.main === module) writeFileSync(PAGE, page().wanted);
