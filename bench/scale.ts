import { runBench } from './harness/bench';
import { withCpu } from './harness/cpu';
import { load } from './harness/load';
import { say } from '../testbed/say';
import { figure, medianRatio, medians, takeTurns, type Figures } from './harness/rounds';
import { openDatabase, openPostgres } from './harness/stage';
import { countRows } from './harness/stored';
import { measureDeliveries } from './scale/deliveries';
import { measureLists } from './scale/lists';
import { openSide, type Side } from './scale/side';

/**
 * `npm run bench:scale`: whether a quote, a notification and the operators' lists cost the same when ten million
 * quotes and a million notifications are stored as when there are a thousand of each. Two databases in one Postgres, an API
 * process on each; each ratio is the median of the pairs' ratios, large / small.
 */
const OPTIONS = {
  quotes: 10_000_000,
  notifications: 1_000_000,
  /** Of each, in the small database. */
  small: 1_000,
  /** Whole months before this one that they are spread over: quotes are kept for seven years, notifications for two. */
  'quote-months': 84,
  'notification-months': 24,
  pairs: 5,
  /** Quotes of a round, 16 at a time. */
  requests: 4_000,
  /** Notifications of a round. */
  deliveries: 320,
};

const CONNECTIONS = 16;
const SETTINGS = { shared_buffers: '512MB', max_wal_size: '8GB', max_connections: 200 };

runBench('scale', OPTIONS, async (bench, options) => {
  const postgres = await openPostgres(bench, SETTINGS);
  const server = openDatabase(bench, postgres.url, { poolSize: 1 });
  const few = { quotes: options.small, notifications: options.small, quoteMonths: 0, notificationMonths: 0 };
  const small = await openSide(bench, { name: 'small', postgres, server, past: few });
  const large = await openSide(bench, {
    name: 'large',
    postgres,
    server,
    past: {
      quotes: options.quotes,
      notifications: options.notifications,
      quoteMonths: options['quote-months'],
      notificationMonths: options['notification-months'],
    },
  });
  const stored = {
    stored_quotes: await countRows(large.owner, 'quotes'),
    stored_notifications: await countRows(large.owner, 'notifications'),
  };

  const round = async (side: Side) => measureSide(side, options.requests, options.deliveries);
  say('warming up');
  for (const side of [small, large]) await round(side);
  say('measuring');
  const rounds = await takeTurns(options.pairs, { small: () => round(small), large: () => round(large) });
  const columns = { small: medians(rounds.small), large: medians(rounds.large) };
  const ratios = Object.keys(columns.small).map(
    (name) => [`${name}_ratio`, medianRatio(rounds.large, rounds.small, name)] as const,
  );
  return { figures: { ...stored, ...Object.fromEntries(ratios) }, columns };
});

async function measureSide(side: Side, requests: number, deliveries: number): Promise<Figures> {
  const { api, postgresPid } = side;
  const measured = { processes: { api: api.child.pid }, postgres: { postgres: postgresPid } };
  const { result: quotes, cpu } = await withCpu(measured, requests, () =>
    load({ ...api, connections: CONNECTIONS, requests }),
  );
  if (quotes['failures'] !== 0) throw new Error(`${quotes['failures']} of ${requests} quotes failed`);
  return {
    quote_cpu_ms: figure(cpu, 'api_cpu_ms') + figure(cpu, 'postgres_cpu_ms'),
    quote_postgres_cpu_ms: figure(cpu, 'postgres_cpu_ms'),
    quote_p50_ms: figure(quotes, 'p50_ms'),
    quote_p99_ms: figure(quotes, 'p99_ms'),
    ...(await measureDeliveries(side, deliveries)),
    ...(await measureLists(side)),
  };
}
