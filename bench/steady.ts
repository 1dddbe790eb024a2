import { seedDemo } from '../dev/seed';
import { quoteBody, startOurs, type Target } from './harness/api';
import { pause, runBench } from './harness/bench';
import { load } from './harness/load';
import { say } from '../testbed/say';
import { figure, median, monotonicMs, spread, type Figures } from './harness/rounds';
import { openStage, type Stage } from './harness/stage';
import { settled, storeChange } from './harness/stored';
import { readDatabase, readPostgres, readProcess } from './steady/reading';

/**
 * `npm run bench:steady`: two hours of steady load on one API process, one worker and a Temporal on Postgres, with a reading of
 * memory, open files, sessions and tables each minute. A ratio is the median of the last quarter of the readings / that of the
 * second; during the first quarter caches and pools fill. Nothing that is not stored for a request may grow.
 */
const OPTIONS = {
  minutes: 120,
  /** Quotes and deliveries of each second. */
  quotes: 8,
  deliveries: 2,
};

const READ_EVERY_S = 60;

runBench('steady', OPTIONS, async (bench, options) => {
  const { minutes, quotes, deliveries } = options;
  const stage = await openStage(bench);
  const { receivers, database, partners } = stage;
  const { partnerId, apiKeys } = await seedDemo(stage.postgres.url, undefined);
  const body = quoteBody(partnerId, 'M1000002');
  const api = await startOurs(bench, { databaseUrl: stage.postgres.url, body, key: apiKeys.test });

  const readings: Figures[] = [];
  /** Deliveries under way, with the moment of their commit. */
  const committed = new Map<string, number>();
  const times: number[] = [];
  let [stored, failures, repeats] = [0, 0, 0];
  receivers.onArrival = (eventId) => {
    const at = committed.get(eventId);
    if (at === undefined) repeats += 1;
    else times.push((receivers.arrivals.get(eventId) ?? Number.NaN) - at);
    committed.delete(eventId);
    // So that a repeat is seen, and this process does not grow.
    receivers.arrivals.delete(eventId);
  };
  const second = async () => {
    const asked = load({ ...api, connections: 1, requests: quotes });
    for (let nth = 0; nth < deliveries; nth += 1) {
      const partner = partners[stored % partners.length] ?? '';
      stored += 1;
      const [eventId, at] = await storeChange(database, partner, (id) => committed.set(id, monotonicMs()));
      if (committed.has(eventId)) committed.set(eventId, at);
    }
    failures += figure(await asked, 'failures');
  };

  const from = monotonicMs();
  for (let nth = 1; nth <= minutes * 60; nth += 1) {
    await second();
    await pause(from + nth * 1_000 - monotonicMs());
    if (nth % READ_EVERY_S !== 0) continue;
    readings.push(await read(stage, api));
    if ((nth / 60) % 10 === 0) say(`${nth / 60} minutes, ${times.length} of ${stored} delivered`);
  }
  await settled(stage);
  const perReading = { quote_bytes: quotes * READ_EVERY_S, delivery_bytes: deliveries * READ_EVERY_S };
  const { ratios, columns } = flatness(readings, perReading);
  const { p50_ms: p50, p99_ms: p99 } = spread(times);
  const figures = {
    minutes,
    quotes: quotes * minutes * 60,
    quotes_failed: failures,
    deliveries: stored,
    deliveries_lost: committed.size,
    repeats,
    delivery_p50_ms: p50,
    delivery_p99_ms: p99,
    ...ratios,
  };
  return { figures, columns };
});

async function read(stage: Stage, api: Target): Promise<Figures> {
  return {
    ...(await readProcess('api', api.child.pid ?? 0)),
    ...(await readProcess('worker', stage.worker.pid ?? 0)),
    ...(await readProcess('temporal', stage.temporal.pid)),
    ...(await readPostgres('postgres', stage.postgres.pid)),
    ...(await readPostgres('temporal_postgres', stage.temporal.postgres.pid)),
    ...(await readDatabase(stage.database.sql)),
  };
}

/** @param perReading requests between two readings, for what has to be stored for each of them. */
function flatness(readings: readonly Figures[], perReading: Figures) {
  const quarter = (nth: number) => {
    const [from, to] = [nth, nth + 1].map((end) => Math.floor((readings.length * end) / 4));
    const own = readings.slice(from, to);
    const values = Object.keys(readings[0] ?? {}).map((name) => {
      const all = own.map((one) => figure(one, name));
      const count = perReading[name];
      if (count === undefined) return [name, median(all)] as const;
      const grown = (all.at(-1) ?? Number.NaN) - (all[0] ?? Number.NaN);
      return [name, grown / ((all.length - 1) * count)] as const;
    });
    return Object.fromEntries(values);
  };
  const columns = { second_quarter: quarter(1), last_quarter: quarter(3) };
  const ratios = Object.entries(columns.last_quarter).map(
    ([name, value]) => [`${name}_ratio`, value / figure(columns.second_quarter, name)] as const,
  );
  return { columns, ratios: Object.fromEntries(ratios) };
}
