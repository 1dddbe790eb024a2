import { failures } from './finding';
import { runLoss } from './lost-temporal';

const given = (name: string, byDefault: number) => Number(process.env[name] ?? byDefault);
const say = (text: string) => void process.stdout.write(`${text}\n`);

test("Temporal's databases are deleted with 2,000 deliveries in all steps: each returns to its own", async () => {
  const seed = given('CRASH_SEED', Date.now() % 1_000_000);
  say(`CRASH_SEED=${seed}`);
  const { findings, report } = await runLoss({
    backlog: given('CRASH_BACKLOG', 2_000),
    seed,
    say,
  });
  say(report);
  expect(failures(findings)).toEqual([]);
});
