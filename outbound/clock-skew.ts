import { parseHttpDate } from '../domain/retry-after';

/**
 * How far our clock is ahead of the one that wrote an answer's Date header, in milliseconds, to about a second.
 * @returns null without a Date that can be read.
 */
export function clockSkewOf(date: string | undefined, nowMs: number): number | null {
  const theirsMs = date === undefined ? null : parseHttpDate(date.trim(), nowMs);
  return theirsMs === null ? null : nowMs - theirsMs;
}
