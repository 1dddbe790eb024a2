import { MONTHLY_KINDS } from '../../db/retention/kinds';
import { dropMonth, expiredMonths } from '../../db/retention/months';
import { load } from '../load';
import { median } from '../rounds';
import type { Side } from './side';

const DAYS = 31;
const CONNECTIONS = 4;
const REQUESTS = 2_000;

/**
 * Drops the oldest months of each kind as the retention does, while quotes are being asked for: how long it takes, how many rows go
 * with it, and the slowest quotes meanwhile and without it. A month is counted before it goes, so its time grows with the month and
 * not with what is stored.
 */
export async function dropOldestMonth(side: Side, times: number): Promise<Record<string, number>> {
  const quotes = () => load({ ...side.api, connections: CONNECTIONS, requests: REQUESTS });
  const figures: Record<string, number> = {};
  const p99 = { without: [] as number[], meanwhile: [] as number[] };
  const found = new Map<string, { ms: number[]; rows: number[] }>();
  for (let nth = 0; nth < times; nth += 1) {
    p99.without.push((await quotes()).p99Ms);
    const loaded = quotes();
    for (const [name, kind] of Object.entries(MONTHLY_KINDS)) {
      const [month] = await expiredMonths(side.owner.db, kind, DAYS);
      if (month === undefined) continue;
      const startedAt = performance.now();
      const drop = () => dropMonth(side.owner.db, kind, month, { days: DAYS, actor: 'bench' });
      let dropped = await drop();
      while (dropped === 'busy') dropped = await drop();
      if (dropped === 'stays') throw new Error(`${month.partition} has to stay`);
      const { ms, rows } = found.get(name) ?? { ms: [], rows: [] };
      found.set(name, { ms: [...ms, performance.now() - startedAt], rows: [...rows, dropped.rows] });
    }
    p99.meanwhile.push((await loaded).p99Ms);
  }
  for (const [name, { ms, rows }] of found) {
    figures[`retention_${name}_ms`] = median(ms);
    figures[`retention_${name}_rows`] = median(rows);
  }
  figures['retention_quote_p99_ms'] = median(p99.meanwhile);
  figures['retention_quote_p99_ratio'] = median(
    p99.meanwhile.map((ms, nth) => ms / (p99.without[nth] ?? Number.NaN)),
  );
  return figures;
}
