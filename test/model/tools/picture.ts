import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Event } from '../world';
import { explore } from './search';
import { world } from './worlds';

/** One event, every answer, one order, and one thing that goes wrong. */
const SETUP = world('picture', {
  answers: ['delivered', 'failed', 'gone'],
  faults: 1,
  may: ['dies', 'expires'],
  orders: 1,
  order: ['pause', 'cancel', 'resend', 'endpoint', 'partner'],
});

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
  [/released|resend/, 'released, resent'],
  [/cancel/, 'cancelled'],
  [/expires/, '30 days'],
  [/pauses/, 'pause'],
  [/resumes/, 'resume'],
  [/replaces it/, 'restart'],
];

const PAGE = join(__dirname, '../../../docs/model.md');

/** The page with its diagram: the states of an event, and what leads from one to the other, as the search finds them. */
function page(): { readonly now: string; readonly wanted: string } {
  const block = /(?<=```mermaid\nstateDiagram-v2\n {2}%% made from test\/model\n)[^`]*/;
  const now = readFileSync(PAGE, 'utf8');
  if (!block.test(now)) throw new Error('The page has no diagram made from test/model.');
  return { now, wanted: now.replace(block, () => picture()) };
}

/** Whether the page has the diagram of this model. */
export function isDrawn(): boolean {
  const { now, wanted } = page();
  return now === wanted;
}

function picture(): string {
  const arrows = new Map<string, Set<string>>();
  explore(SETUP, (before, { text, world: after }) => {
    const [from, to] = [before, after].map(({ events: [event] }) => (event ? stateOf(event) : ''));
    const label = LABELS.find(([form]) => form.test(text))?.[1];
    const arrow = `  ${from} --> ${to}`;
    if (from !== to && label !== undefined) arrows.set(arrow, (arrows.get(arrow) ?? new Set()).add(label));
    return false;
  });
  const lines = [...arrows].map(([arrow, labels]) => `${arrow}: ${[...labels].toSorted().join(', ')}\n`);
  return lines.toSorted().join('');
}

if (require.main === module) writeFileSync(PAGE, page().wanted);
