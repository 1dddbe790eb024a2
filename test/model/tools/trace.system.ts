import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { testTemporal } from '../../support/temporal';
import { FAULTS, plant, traceOf } from './planted';
import { shortRun } from './short-run';
import type { Line } from './trace';

const temporal = testTemporal();
const say = (text: string) => void process.stdout.write(`${text}\n`);

/** With RECORD_TRACES=1 the traces of these runs are kept, for `npm run test:model`. */
function keep(name: string, lines: readonly Line[]): void {
  if (process.env['RECORD_TRACES'] !== '1') return;
  const folder = join(__dirname, 'traces');
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, `${name}.json`),
    `[\n${lines.map((line) => JSON.stringify(line)).join(',\n')}\n]\n`,
  );
}

test('the model accepts a short run with all that may happen in it', async () => {
  const verdict = await shortRun({ temporal }, async () => undefined);
  say(JSON.stringify({ ...verdict, lines: verdict.lines.length }));
  keep('accepted', verdict.lines);
  expect(verdict.refused).toBeNull();
  expect(verdict.deliveries).toBeGreaterThanOrEqual(4);
}, 240_000);

describe('with a planted fault', () => {
  test.each(FAULTS)(
    'the model refuses: $name',
    async (fault) => {
      const { refused, transitions, lines } = await shortRun({ temporal }, (sql) => plant(sql, fault));
      say(
        `${fault.name}: ${refused === null ? 'accepted' : `refused after ${transitions} transitions: ${refused.why}`}`,
      );
      keep(traceOf(fault), lines);
      expect(refused).not.toBeNull();
    },
    240_000,
  );
});
