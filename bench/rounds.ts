import { cpuPerRequest, cpuUse, type CpuUse } from './cpu';
import { loadOver, openConnections, type LoadResult } from './load';
import type { Target } from './targets';

/** One round of load on one server. */
export interface Round extends LoadResult {
  /** CPU milliseconds per request. */
  readonly cpu: CpuUse;
}

/** A round on each of the two servers, one right after the other. */
export interface Pair {
  readonly bare: Round;
  readonly ours: Round;
}

export interface PairsOptions {
  readonly bare: Target;
  readonly ours: Target;
  readonly postgresPid: number;
  readonly connections: number;
  /** Requests per round. */
  readonly requests: number;
  readonly pairs: number;
}

/**
 * Loads both servers in turn. Rounds are short and paired, and who goes first alternates, so that what else the
 * machine does meanwhile falls on both: the median of the pairs' ratios hardly moves with it.
 */
export async function runPairs(options: PairsOptions): Promise<Pair[]> {
  const pairs: Pair[] = [];
  for (let at = 0; at < options.pairs; at += 1) {
    if (at % 2 === 0) {
      const bare = await round(options.bare, options);
      pairs.push({ bare, ours: await round(options.ours, options) });
    } else {
      const ours = await round(options.ours, options);
      pairs.push({ bare: await round(options.bare, options), ours });
    }
  }
  return pairs;
}

async function round(
  target: Target,
  { postgresPid, connections, requests }: Omit<PairsOptions, 'bare' | 'ours' | 'pairs'>,
): Promise<Round> {
  const pid = target.child.pid ?? 0;
  const sockets = await openConnections(target, connections);
  const before = await cpuUse(pid, postgresPid);
  const result = await loadOver(sockets, { ...target, requests });
  if (result.failures > 0) throw new Error(`${result.failures} of ${requests} answers were not 200`);
  return { ...result, cpu: cpuPerRequest(before, await cpuUse(pid, postgresPid), requests) };
}

/** The value below which such a share of them lies. @param sorted ascending. */
export const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

/** The median, the mean of the two in the middle when their number is even. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const low = sorted[Math.ceil(half) - 1] ?? Number.NaN;
  const high = sorted[Math.floor(half)] ?? Number.NaN;
  return (low + high) / 2;
}
