import { APPLICATION_STATES, mayFollow, TRANSITIONS } from '../../domain/application-states';
import { DELIVERY_CHANGES, DELIVERY_STATES, END_STATES, ENDS } from '../../domain/notification-states';

/** The page with both state diagrams, made from the tables that the product decides by. Each replaces the diagram that names its table. */
export const withStateDiagrams = (page: string): string =>
  [
    ['domain/notification-states.ts', deliveryDiagram()],
    ['domain/application-states.ts', applicationDiagram()],
  ].reduce((text, [table = '', diagram = '']) => {
    const block = new RegExp(`(?<=\`\`\`mermaid\\nstateDiagram-v2\\n  %% made from ${table}\\n)[^\`]*`);
    if (!block.test(text)) throw new Error(`The page has no diagram made from ${table}.`);
    return text.replace(block, diagram);
  }, page);

/** One arrow for each change of state, with its events. A row's states stand in a frame; what happens in all of them leaves the frame. */
function deliveryDiagram(): string {
  const arrows = new Map<string, string[]>();
  for (const [event, { from, to }] of Object.entries(DELIVERY_CHANGES)) {
    for (const state of from) {
      if (to === null || to === state) continue;
      const arrow = `${state} --> ${to}`;
      arrows.set(arrow, [...(arrows.get(arrow) ?? []), event]);
    }
  }
  const within = [...arrows].map(([arrow, events]) => `    ${arrow}: ${events.join(', ')}`);
  const open: readonly string[] = DELIVERY_STATES;
  const ended: readonly string[] = END_STATES;
  const ends = Object.values(ENDS).flatMap(({ from, end }) => {
    const states: readonly string[] = from;
    const all = open.every((state) => states.includes(state));
    const sources = all ? ['row', ...states.filter((state) => !open.includes(state))] : states;
    return sources
      .filter((state) => state !== end)
      .map((state) => `  ${state} --> ${end}${ended.includes(state) ? ': reported late' : ''}`);
  });
  return lines('  [*] --> queued', '  state "has a row in deliveries" as row {', ...within, '  }', ...ends);
}

/** An end that every state up to a certain one may lead to is the title of a frame around those states; all else is an arrow. */
function applicationDiagram(): string {
  const [first] = APPLICATION_STATES;
  const frames = APPLICATION_STATES.filter((state) => TRANSITIONS[state].length === 0)
    .map((end) => ({ end, before: APPLICATION_STATES.filter((state) => mayFollow(state, end)) }))
    .filter(({ before }) => before.every((state, position) => state === APPLICATION_STATES[position]))
    .toSorted((one, other) => other.before.length - one.before.length);
  const framed = frames.map(({ end }) => end);
  const nested = APPLICATION_STATES.slice(0, frames[0]?.before.length).flatMap((state) => [
    `  ${state}`,
    ...frames.filter(({ before }) => before.at(-1) === state).map(() => '  }'),
  ]);
  const arrows = APPLICATION_STATES.flatMap((from) =>
    TRANSITIONS[from].filter((to) => !framed.includes(to)).map((to) => `  ${from} --> ${to}`),
  );
  const opened = frames.map(({ end }) => `  state "may become ${end}" as to_${end} {`);
  return lines(`  [*] --> ${first}`, ...opened, ...nested, ...arrows);
}

const lines = (...all: readonly string[]) => all.map((line) => `${line}\n`).join('');
