import { setTimeout as sleep } from 'node:timers/promises';
import { repeatedWarnings } from '../../runtime/telemetry/logger';

test('a warning that repeats is logged at once, then now and then with the number left out, whatever its figures', async () => {
  const logged: unknown[][] = [];
  const log = (...line: unknown[]) => void logged.push(line);
  const { warn } = repeatedWarnings({ warn: log, error: log }, 50);
  for (let nth = 0; nth < 40; nth += 1) warn({ nth }, `${nth} deliveries could not be started`);
  warn({}, 'another warning');
  const first = [
    [{ nth: 0 }, '0 deliveries could not be started'],
    [{}, 'another warning'],
  ];
  expect(logged).toEqual(first);
  await sleep(200);
  expect(logged).toEqual([...first, [{ nth: 39, leftOut: 39 }, '39 deliveries could not be started']]);
  warn({ nth: 1 }, '1 deliveries could not be started');
  expect(logged).toHaveLength(4);
});
