import { keepRetentionDays } from '../../db/retention/days';
import { MONTHLY_KINDS, dropMonth, expiredMonths } from '../../db/retention/remove';
import { load } from '../harness/load';
import { medianRatio, medians, type Figures } from '../harness/rounds';
import type { Side } from './side';

const DAYS = 31;
const CONNECTIONS = 4;
const REQUESTS = 2_000;

/**
 * Drops the oldest months of each kind as the retention does, while quotes are being asked for: how long it takes, how many rows
 * go with it, and the slowest quotes meanwhile and without it. A month is counted before it goes, so its time grows with the
 * month and not with the table.
 */
export async function dropOldestMonth(side: Side, times: number): Promise<Figures> {
  const quotes = () => load({ ...side.api, connections: CONNECTIONS, requests: REQUESTS });
  const without: Figures[] = [];
  const meanwhile: Figures[] = [];
  const drops: Figures[] = [];
  for (let nth = 0; nth < times; nth += 1) {
    without.push(await quotes());
    const loaded = quotes();
    drops.push(await dropOfEachKind(side));
    meanwhile.push(await loaded);
  }
  return {
    ...medians(drops),
    retention_quote_p99_ms: medians(meanwhile)['p99_ms'] ?? Number.NaN,
    retention_quote_p99_ratio: medianRatio(meanwhile, without, 'p99_ms'),
  };
}

async function dropOfEachKind({ owner: { db } }: Side): Promise<Figures> {
  const found: Record<string, number> = {};
  const days = { payloads: DAYS, attempts: DAYS, notifications: DAYS, quotes: DAYS };
  await keepRetentionDays(db, { days, shorten: true });
  for (const [name, kind] of Object.entries(MONTHLY_KINDS)) {
    const [month] = await expiredMonths(db, kind);
    if (month === undefined) continue;
    const startedAt = performance.now();
    const drop = () => dropMonth(db, kind, month);
    let dropped = await drop();
    while (dropped === 'busy') dropped = await drop();
    if (dropped === 'stays') throw new Error(`${month.partition} has to stay`);
    found[`retention_${name}_ms`] = performance.now() - startedAt;
    found[`retention_${name}_rows`] = dropped.rows;
  }
  return found;
}
