import { createWriteStream } from 'node:fs';
import { parseArgs } from 'node:util';
import { seedDemo } from '../dev/seed';
import { API_NODE_ARGS } from './node-args';
import { benchDirectory } from './directory';
import { printFigures, say } from './report';
import { storeChange } from './delivery/feed';
import { monotonicMs } from './delivery/monotonic';
import { pause, settled } from './delivery/rounds';
import { setStage, type Stage } from './delivery/stage';
import { load } from './load';
import { quoteBody } from './quote-body';
import { median, percentile } from './rounds';
import { readDatabase, readPostgres, readProcess, type Reading } from './steady/reading';
import { end, startOurs, type Target } from './targets';

/**
 * `npm run bench:steady`: two hours of steady load on one API process, one worker and a Temporal on Postgres, with a reading of
 * memory, open files, sessions and tables each minute. A ratio is the median of the last quarter of the readings / that of the
 * second; during the first quarter caches and pools fill. Nothing that is not stored for a request may grow.
 */

const { values: options } = parseArgs({
  options: {
    /** One JSON object on standard output instead of lines. */
    json: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '120' },
    /** Quotes and deliveries of each second. */
    quotes: { type: 'string', default: '8' },
    deliveries: { type: 'string', default: '2' },
    /** Every reading, a line of JSON each, for a picture. */
    readings: { type: 'string' },
  },
});

const READ_EVERY_S = 60;

async function read(stage: Stage, api: Target): Promise<Reading> {
  return {
    ...(await readProcess('api', api.child.pid ?? 0)),
    ...(await readProcess('worker', stage.worker.pid ?? 0)),
    ...(await readProcess('temporal', stage.temporal.pid)),
    ...(await readPostgres('postgres', stage.postgres.pid)),
    ...(await readPostgres('temporal_postgres', stage.temporal.postgres.pid)),
    ...(await readDatabase(stage.database.sql)),
  };
}

const quarter = (readings: readonly Reading[], nth: number) =>
  readings.slice(Math.floor((readings.length * nth) / 4), Math.floor((readings.length * (nth + 1)) / 4));

function flatness(readings: readonly Reading[], perReading: Readonly<Record<string, number>>): Reading {
  const figures: Record<string, number> = {};
  for (const name of Object.keys(readings[0] ?? {})) {
    const of = (nth: number) => quarter(readings, nth).map((one) => one[name] ?? Number.NaN);
    const count = perReading[name];
    // What each request leaves behind, where something has to be stored for it.
    const value = (values: readonly number[]) =>
      count === undefined
        ? median(values)
        : ((values.at(-1) ?? Number.NaN) - (values[0] ?? Number.NaN)) / ((values.length - 1) * count);
    figures[`${name}_second_quarter`] = value(of(1));
    figures[`${name}_last_quarter`] = value(of(3));
    figures[`${name}_ratio`] = value(of(3)) / value(of(1));
  }
  return figures;
}

async function main(): Promise<void> {
  const minutes = Number(options.minutes);
  const quotes = Number(options.quotes);
  const deliveries = Number(options.deliveries);
  const { directory, remove } = await benchDirectory('steady');
  const stage = await setStage({ directory, nodeArgs: [], say });
  try {
    const { partnerId, apiKeys } = await seedDemo(stage.postgres.url, undefined);
    const body = quoteBody(partnerId, 'M1000002');
    const api = await startOurs({
      databaseUrl: stage.postgres.url,
      directory,
      nodeArgs: API_NODE_ARGS,
      body,
      key: apiKeys.test,
    });
    const file = options.readings === undefined ? undefined : createWriteStream(options.readings);
    const readings: Reading[] = [];
    /** Under way, with the moment of their commit. */
    const committed = new Map<string, number>();
    const times: number[] = [];
    let stored = 0;
    let failures = 0;
    let repeats = 0;
    stage.receivers.onArrival = (eventId) => {
      const at = committed.get(eventId);
      if (at === undefined) repeats += 1;
      else times.push((stage.receivers.arrivals.get(eventId) ?? Number.NaN) - at);
      committed.delete(eventId);
      // A repeat shall be seen, and this process not grow.
      stage.receivers.arrivals.delete(eventId);
    };
    const second = async () => {
      const asked = load({ ...api, connections: 1, requests: quotes });
      for (let nth = 0; nth < deliveries; nth += 1) {
        const partner = stage.partners[stored % stage.partners.length] ?? '';
        stored += 1;
        const [eventId, at] = await storeChange(stage.database, partner, (id) =>
          committed.set(id, monotonicMs()),
        );
        if (committed.has(eventId)) committed.set(eventId, at);
      }
      const answered = await asked;
      failures += answered.failures;
    };
    try {
      const from = monotonicMs();
      for (let nth = 1; nth <= minutes * 60; nth += 1) {
        await second();
        await pause(from + nth * 1_000 - monotonicMs());
        if (nth % READ_EVERY_S !== 0) continue;
        const reading = await read(stage, api);
        readings.push(reading);
        file?.write(`${JSON.stringify(reading)}\n`);
        if ((nth / 60) % 10 === 0) say(`${nth / 60} minutes, ${times.length} of ${stored} delivered`);
      }
      await settled(stage);
      const sorted = times.toSorted((a, b) => a - b);
      const figures = {
        minutes,
        quotes: quotes * minutes * 60,
        quotes_failed: failures,
        deliveries: stored,
        deliveries_lost: committed.size,
        repeats,
        delivery_p50_ms: median(sorted),
        delivery_p99_ms: percentile(sorted, 0.99),
        ...flatness(readings, {
          quote_bytes: quotes * READ_EVERY_S,
          delivery_bytes: deliveries * READ_EVERY_S,
        }),
      };
      printFigures(figures, options.json, 3);
    } finally {
      file?.end();
      await end(api);
    }
  } finally {
    await stage.close();
    await remove();
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
