/** `npm run test:model`: the search, the planted faults, and the picture of docs/model.md. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDrawn } from './picture';
import { FAULTS, patched } from './planted';
import { search } from './search';
import { WORLDS } from './worlds';

const [, , ...given] = process.argv;
const has = (option: string) => given.includes(`--${option}`);
const names = given.filter((one) => !one.startsWith('--'));
const out = (text: string) => void process.stdout.write(`${text}\n`);
const say = (text: string) => has('json') || out(text);

/** Visits the worlds with one of these names in theirs, or all; nightly those in which something fails, with a fault more. */
function searchAll() {
  const extra = has('nightly') ? 1 : 0;
  const wanted = WORLDS.filter(
    ({ name, faults }) => faults >= extra && (names.length === 0 || names.some((one) => name.includes(one))),
  );
  return wanted.map((setup) => {
    const found = search({ ...setup, faults: setup.faults + extra });
    const { name, states, depth, seconds, violations } = found;
    const verdict = violations.length === 0 ? 'holds ' : 'BROKEN';
    say(`${verdict} ${name}: ${states} states, depth ${depth}, ${seconds.toFixed(1)} s`);
    for (const { invariant, story } of violations)
      say([`  ${invariant}`, ...story.map((step, at) => `  ${at + 1}. ${step}`)].join('\n'));
    return found;
  });
}

/** What the search of one world finds in a copy of the model that has the fault. */
function finds({ name, world, model }: (typeof FAULTS)[number]): boolean {
  const copy = mkdtempSync(join(tmpdir(), 'model-'));
  try {
    for (const part of ['test/model', 'domain'])
      cpSync(join(__dirname, '../../..', part), join(copy, part), { recursive: true });
    const file = join(copy, model.file);
    writeFileSync(file, patched(readFileSync(file, 'utf8'), model));
    const command = ['--import', 'tsx', join(copy, 'test/model/tools/run.ts'), world];
    const { stdout } = spawnSync(process.execPath, command, { encoding: 'utf8' });
    const [, invariant] = /^BROKEN .*\n {2}(.*)/m.exec(stdout) ?? [];
    say(`planted: ${name}: ${invariant ?? 'not found'}`);
    return invariant !== undefined;
  } finally {
    rmSync(copy, { recursive: true });
  }
}

const found = searchAll();
const sum = (of: (one: (typeof found)[number]) => number) => found.reduce((total, one) => total + of(one), 0);
const whole = names.length === 0;
const planted = whole ? FAULTS : [];
const result = {
  worlds: found.length,
  states: sum((one) => one.states),
  seconds: Math.round(sum((one) => one.seconds)),
  violations: sum((one) => one.violations.length),
  planted: planted.length,
  refused: planted.filter(finds).length,
};
out(JSON.stringify(result));
const drawn = !whole || isDrawn();
if (!drawn) console.error('docs/model.md does not follow from test/model; run npm run guide.');
process.exitCode = result.violations === 0 && result.refused === result.planted && drawn ? 0 : 1;
