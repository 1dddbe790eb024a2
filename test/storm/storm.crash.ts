import { killableProductionTemporal } from '../support/production-temporal';
import { failures } from './finding';
import { runStorm } from './run';

/** A number that was given in the environment, for a run of another size. */
const given = (name: string, byDefault: number) => Number(process.env[name] ?? byDefault);
const say = (text: string) => void process.stdout.write(`${text}\n`);

test('2,000 applications in flight under random kill -9 of API, workers, Temporal and Postgres', async () => {
  const seed = given('CRASH_SEED', Date.now() % 1_000_000);
  const kills = given('CRASH_KILLS', 40);
  say(`CRASH_SEED=${seed}`);
  const { findings, report } = await runStorm({
    partners: 10,
    apis: 2,
    workers: 4,
    openTemporal: killableProductionTemporal,
    applications: given('CRASH_APPLICATIONS', 2_000),
    lenders: 24,
    kills: {
      api: Math.ceil(kills * 0.25),
      worker: Math.ceil(kills * 0.35),
      temporal: Math.ceil(kills * 0.2),
      postgres: Math.ceil(kills * 0.2),
    },
    pauseMs: given('CRASH_PAUSE_MS', 3_000),
    seed,
    timeoutMs: 900_000,
    say,
  });
  say(report);
  expect(failures(findings)).toEqual([]);
});
