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

/** The partner guide with the retry ladder as a line of time: attempts, the waits between them, the time since the first. */
export function withLadder(guide: string): string {
  let line = 'attempt  ';
  let below = 'after    ';
  let sinceMs = 0;
  for (const [index, waitMs] of DELIVERY_LADDER_MS.entries()) {
    sinceMs += waitMs;
    line += index === 0 ? '' : `──${text(waitMs)}──`;
    below = `${below.padEnd(line.length)}${text(sinceMs)}`;
    line += index + 1;
  }
  return guide.replace(/(?<=```text\n)attempt[^`]*/, `${line}\n${below}\n`);
}
