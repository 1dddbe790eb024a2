import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '../dev/free-port';
import { startPostgres } from '../dev/postgres';
import { benchDirectory } from './directory';
import { printFigures, say } from './report';
import { cpuPerRequest, cpuUse } from './cpu';
import { load } from './load';
import { median } from './rounds';
import { measureDeliveries } from './scale/deliveries';
import { LIST_NAMES, measureLists } from './scale/lists';
import { countNotifies } from './scale/notifies';
import { dropOldestMonth } from './scale/retention';
import { openSide, type Side } from './scale/side';

/**
 * `npm run bench:scale`: whether a quote, a notification, the operators' lists and the retention cost the same when ten million
 * quotes and a million notifications are stored as when there are a thousand of each. Two databases in one Postgres, an API process
 * on each; pairs of rounds whose order alternates; each ratio is the median of the pairs' ratios, large / small.
 */

const { values: options } = parseArgs({
  options: {
    /** One JSON object on standard output instead of lines. */
    json: { type: 'boolean', default: false },
    quotes: { type: 'string', default: '10000000' },
    notifications: { type: 'string', default: '1000000' },
    /** Of each, in the small database. */
    small: { type: 'string', default: '1000' },
    /** Whole months before this one that they are spread over: quotes are kept for seven years, notifications for two. */
    'quote-months': { type: 'string', default: '84' },
    'notification-months': { type: 'string', default: '24' },
    pairs: { type: 'string', default: '5' },
    /** Quotes of a round, 16 at a time. */
    requests: { type: 'string', default: '4000' },
    /** Notifications of a round. */
    deliveries: { type: 'string', default: '320' },
  },
});

const number = (name: Exclude<keyof typeof options, 'json'>) => Number(options[name]);
const CONNECTIONS = 16;

/** All that is measured of a side, by name. */
type Round = Readonly<Record<string, number>>;

async function round(side: Side): Promise<Round> {
  const { api, postgresPid } = side;
  const requests = number('requests');
  const before = await cpuUse(api.child.pid ?? 0, postgresPid);
  const quotes = await load({ ...api, connections: CONNECTIONS, requests });
  const cpu = cpuPerRequest(before, await cpuUse(api.child.pid ?? 0, postgresPid), requests);
  if (quotes.failures > 0) throw new Error(`${quotes.failures} of ${requests} quotes failed`);
  const deliveries = await measureDeliveries(side, number('deliveries'));
  const lists = await measureLists(side);
  return {
    quote_cpu: cpu.server + cpu.postgres,
    quote_postgres_cpu: cpu.postgres,
    quote_p50_ms: quotes.p50Ms,
    quote_p99_ms: quotes.p99Ms,
    notification_cpu: deliveries.cpuMs,
    store_ms: deliveries.storeMs,
    claim_ms: deliveries.claimMs,
    claim_every_month_ms: deliveries.claimEveryMonthMs,
    fast_attempt_ms: deliveries.fastAttemptMs,
    attempt_ms: deliveries.attemptMs,
    ...Object.fromEntries(LIST_NAMES.map((name) => [`list_${name}_ms`, lists[name]])),
  };
}

async function count({ owner }: Side, table: 'quotes' | 'notifications'): Promise<number> {
  const [row] = await owner.sql<{ rows: number }[]>`select count(*)::float8 as rows from ${owner.sql(table)}`;
  return row?.rows ?? Number.NaN;
}

async function main(): Promise<void> {
  const { directory, remove } = await benchDirectory('scale');
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const postgres = await startPostgres({
      dataDir: join(directory, 'postgres'),
      port: await freePort(),
      password: 'bench',
      settings: { shared_buffers: '512MB', max_wal_size: '8GB', max_connections: 200 },
    });
    closers.push(() => postgres.stop());
    const common = { postgres, directory, say };
    const few = number('small');
    const small = await openSide({
      ...common,
      name: 'small',
      past: { quotes: few, notifications: few, quoteMonths: 0, notificationMonths: 0 },
    });
    closers.push(() => small.close());
    const large = await openSide({
      ...common,
      name: 'large',
      past: {
        quotes: number('quotes'),
        notifications: number('notifications'),
        quoteMonths: number('quote-months'),
        notificationMonths: number('notification-months'),
      },
    });
    closers.push(() => large.close());
    const stored = {
      stored_quotes: await count(large, 'quotes'),
      stored_notifications: await count(large, 'notifications'),
    };
    say('warming up');
    for (const side of [small, large]) await round(side);
    const smalls: Round[] = [];
    const larges: Round[] = [];
    for (let pair = 0; pair < number('pairs'); pair += 1) {
      const turns = [
        async () => smalls.push(await round(small)),
        async () => larges.push(await round(large)),
      ];
      for (const turn of pair % 2 === 0 ? turns : turns.toReversed()) await turn();
      say(`pair ${pair + 1} of ${options.pairs}`);
    }
    const figures: Record<string, number> = { ...stored };
    for (const name of Object.keys(smalls[0] ?? {})) {
      const pick = (rounds: readonly Round[]) => rounds.map((one) => one[name] ?? Number.NaN);
      const ratios = pick(larges).map((value, nth) => value / (pick(smalls)[nth] ?? Number.NaN));
      figures[`${name}_ratio`] = median(ratios);
      figures[`${name}_small`] = median(pick(smalls));
      figures[`${name}_large`] = median(pick(larges));
    }
    say('dropping months');
    Object.assign(figures, await dropOldestMonth(large, number('pairs')));
    say('counting notifies');
    const logged = await countNotifies(large.owner.sql, postgres.logFile, () => measureDeliveries(large, 32));
    say(`${logged.transactions} transactions, ${logged.stored} of them changed a table`);
    if (logged.stored === 0) throw new Error('the log shows no transaction that stores');
    figures['notifies_in_transactions'] = logged.notifiesInside;
    printFigures(figures, options.json, 3);
  } finally {
    for (const closer of closers.toReversed()) await closer();
    await remove();
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
