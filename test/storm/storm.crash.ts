import { killableProductionTemporal } from '../../testbed/production-temporal';
import { failures } from './finding';
import { runLoss } from './lost-temporal';
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
    misbehaving: true,
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
    pauseMs: 3_000,
    seed,
    timeoutMs: 900_000,
    say,
  });
  say(report);
  expect(failures(findings)).toEqual([]);
});

/** What a dead worker had under way is noticed by its heartbeat after 10 s; others carry on with it then. */
const P99_MS = 20_000;

test('a quarter of the workers killed each minute for ten minutes: p99 of the delay is bounded', async () => {
  const minutes = 10;
  const { findings, report, p99Ms } = await runStorm({
    partners: 4,
    apis: 1,
    workers: 4,
    openTemporal: killableProductionTemporal,
    // One application a second, 3.5 events each.
    applications: minutes * 60,
    lenders: 6,
    lenderPauseMs: 6_000,
    kills: { api: 0, worker: minutes, temporal: 0, postgres: 0 },
    // One is away for some seconds of its minute.
    pauseMs: 55_000,
    seed: 10,
    timeoutMs: 120_000,
    say,
  });
  say(report);
  expect(failures(findings)).toEqual([]);
  expect(p99Ms).toBeLessThan(P99_MS);
});

test("Temporal's databases are deleted with 2,000 deliveries in all steps: each returns to its own", async () => {
  const seed = given('CRASH_SEED', Date.now() % 1_000_000);
  say(`CRASH_SEED=${seed}`);
  const { findings, report } = await runLoss({ backlog: 2_000, seed, say });
  say(report);
  expect(failures(findings)).toEqual([]);
});
