import { DELIVERY_LADDER_MS } from '../../domain/delivery-outcome';

const UNITS = [
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** At most one decimal of its largest unit. */
function text(ms: number): string {
  const [unit, size] = UNITS.find(([, size]) => ms >= size) ?? ['s', 1_000];
  return `${Math.floor((ms / size) * 10) / 10} ${unit}`;
}

/** The partner guide with its table of attempts: the wait before each, and the time since the first one. */
export function withLadder(guide: string): string {
  let sinceMs = 0;
  const columns = DELIVERY_LADDER_MS.map((waitMs, nth) => [
    String(nth + 1),
    nth === 0 ? '' : text(waitMs),
    text((sinceMs += waitMs)),
  ]);
  const lines = ['attempt', 'wait', 'since'].map((name, row) =>
    [name.padEnd(7), ...columns.map((cells) => cells[row]?.padStart(8))].join(' ').trimEnd(),
  );
  const found = /^attempt +1 .*\nwait .*\nsince .*$/m;
  if (!found.test(guide)) throw new Error('the guide has no table of attempts');
  return guide.replace(found, lines.join('\n'));
}
