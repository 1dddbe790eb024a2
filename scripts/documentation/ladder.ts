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

/** The partner guide with the waits of the retry ladder, and the time from its first attempt to its last. */
export function withLadder(guide: string): string {
  const waits = DELIVERY_LADDER_MS.slice(1).map(text);
  const sinceMs = DELIVERY_LADDER_MS.reduce((sum, waitMs) => sum + waitMs, 0);
  const ladder = `${waits.slice(0, -1).join(', ')} and ${waits.at(-1)}; ${text(sinceMs)} in all`;
  return guide.replace(
    /Waits between the \d+ attempts: [^;]*; [\d.]+ \w+ in all/,
    `Waits between the ${DELIVERY_LADDER_MS.length} attempts: ${ladder}`,
  );
}
