import { failures } from './finding';
import { runRolling } from './rolling';

const say = (text: string) => void process.stdout.write(`${text}\n`);

/** What a dead worker had under way is noticed by its heartbeat after 10 s; others carry on with it then. */
const P99_MS = 20_000;

test('a quarter of the workers killed each minute for ten minutes: p99 of the delay is bounded', async () => {
  const minutes = Number(process.env['CRASH_MINUTES'] ?? 10);
  const { findings, report, p99Ms } = await runRolling({
    minutes,
    minuteMs: 60_000,
    // One application a second, 3.5 events each.
    applications: minutes * 60,
    lenders: 6,
    seed: 10,
    say,
  });
  say(report);
  expect(failures(findings)).toEqual([]);
  expect(p99Ms).toBeLessThan(P99_MS);
});
