import type { CpuUse } from './cpu';
import { median, type Pair, type Round } from './rounds';

/** Median figures of one server at one number of connections. */
export interface Figures {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpu: CpuUse;
}

/** Both servers' figures, and the medians of the pairs' ratios (ours / bare). */
export interface Comparison {
  readonly connections: number;
  readonly bare: Figures;
  readonly ours: Figures;
  readonly ratios: Figures;
}

export function compare(connections: number, pairs: readonly Pair[]): Comparison {
  const ratio = (of: (round: Round) => number) => median(pairs.map(({ bare, ours }) => of(ours) / of(bare)));
  return {
    connections,
    bare: figures((of) => median(pairs.map((pair) => of(pair.bare)))),
    ours: figures((of) => median(pairs.map((pair) => of(pair.ours)))),
    ratios: figures(ratio),
  };
}

function figures(of: (pick: (round: Round) => number) => number): Figures {
  return {
    perSecond: of((round) => round.perSecond),
    p50Ms: of((round) => round.p50Ms),
    p99Ms: of((round) => round.p99Ms),
    cpu: {
      server: of((round) => round.cpu.server),
      postgres: of((round) => round.cpu.postgres),
      load: of((round) => round.cpu.load),
    },
  };
}

const COLUMNS = ['connections', 'what', 'per second', 'p50 ms', 'p99 ms', 'server', 'postgres', 'load'];

/** The table's head; the last three columns are CPU milliseconds per request. */
export function tableHead(): string {
  return `${' '.repeat(56)}CPU ms per request\n${row(COLUMNS)}`;
}

/** Three lines of the table. */
export function tableRows({ connections, bare, ours, ratios }: Comparison): string {
  const line = (label: string, name: string, figures: Figures, decimals: readonly number[]) =>
    row([label, name, ...values(figures).map((value, at) => value.toFixed(decimals[at]))]);
  const absolute = [0, 2, 2, 3, 3, 3];
  return [
    line(String(connections), 'bare', bare, absolute),
    line(String(connections), 'ours', ours, absolute),
    line('', 'ours/bare', ratios, [2, 2, 2, 2, 2, 2]),
  ].join('\n');
}

function values({ perSecond, p50Ms, p99Ms, cpu }: Figures): number[] {
  return [perSecond, p50Ms, p99Ms, cpu.server, cpu.postgres, cpu.load];
}

function row(cells: readonly string[]): string {
  return cells.map((cell, at) => (at === 1 ? cell.padEnd(9) : cell.padStart(11))).join(' ');
}

/** The figures for `--json`: ratios first, then every absolute figure by server and number of connections. */
export function jsonFigures(comparisons: readonly Comparison[]): Record<string, number> {
  const object: Record<string, number> = {};
  const put = (name: string, value: number) => (object[name] = Math.round(value * 1000) / 1000);
  for (const { connections, ratios } of comparisons.toReversed()) {
    put(`throughput_ratio_${connections}`, ratios.perSecond);
    put(`p50_ratio_${connections}`, ratios.p50Ms);
    put(`p99_ratio_${connections}`, ratios.p99Ms);
  }
  for (const { connections, bare, ours } of comparisons) {
    for (const [name, one] of Object.entries({ bare, ours })) {
      put(`${name}_per_second_${connections}`, one.perSecond);
      put(`${name}_p50_ms_${connections}`, one.p50Ms);
      put(`${name}_p99_ms_${connections}`, one.p99Ms);
      put(`${name}_server_cpu_ms_${connections}`, one.cpu.server);
      put(`${name}_postgres_cpu_ms_${connections}`, one.cpu.postgres);
      put(`${name}_load_cpu_ms_${connections}`, one.cpu.load);
    }
  }
  return object;
}
