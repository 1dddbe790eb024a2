import { APPLICATION_STATES, mayFollow, TRANSITIONS } from '../../domain/application-states';

/** The page with the diagram of an application's states, made from the table that the product decides by. */
export function withStateDiagram(page: string): string {
  const block = /(?<=```mermaid\nstateDiagram-v2\n {2}%% made from domain\/application-states.ts\n)[^`]*/;
  if (!block.test(page)) throw new Error('The page has no diagram of the states of an application.');
  return page.replace(block, applicationDiagram());
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
  const lines = [`  [*] --> ${first}`, ...opened, ...nested, ...arrows];
  return lines.map((line) => `${line}\n`).join('');
}
