/** `npm run test:model`: the search, the planted faults that lie in its worlds, the kept traces, and the picture of docs/model.md. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { page } from './picture';
import { FAULTS, LADDERS, patched, traceOf } from './planted';
import { search } from './search';
import { check, type Line } from './trace';
import { WORLDS } from './worlds';

const [, , ...given] = process.argv;
const has = (option: string) => given.includes(`--${option}`);
const names = given.filter((one) => !one.startsWith('--'));
const out = (text: string) => void process.stdout.write(`${text}\n`);
const say = (text: string) => has('json') || out(text);

/** Visits the worlds with one of these names in theirs, or all. */
function searchAll() {
  const wanted = WORLDS.filter(({ name }) => names.length === 0 || names.some((one) => name.includes(one)));
  return wanted.map((setup) => {
    const found = search(has('nightly') ? { ...setup, faults: setup.faults + 1 } : setup);
    const { name, states, depth, seconds, violations } = found;
    const verdict = violations.length === 0 ? 'holds ' : 'BROKEN';
    say(`${verdict} ${name}: ${states} states, depth ${depth}, ${seconds.toFixed(1)} s`);
    for (const { invariant, story } of violations)
      say([`  ${invariant}`, ...story.map((step, at) => `  ${at + 1}. ${step}`)].join('\n'));
    return found;
  });
}

/** Whether the search finds the fault in a copy of the model that has it. */
function finds({ model }: (typeof FAULTS)[number]): boolean | null {
  if (model === null) return null;
  const copy = mkdtempSync(join(tmpdir(), 'model-'));
  try {
    const own = join(copy, 'test/model');
    cpSync(join(__dirname, '..'), own, { recursive: true });
    cpSync(join(__dirname, '../../../domain'), join(copy, 'domain'), { recursive: true });
    const file = join(own, model.file);
    writeFileSync(file, patched(readFileSync(file, 'utf8'), model));
    execFileSync(process.execPath, ['--import', 'tsx', join(own, 'tools/search-one.ts'), model.world], {
      stdio: 'pipe',
    });
    return false;
  } catch (error) {
    return (error as { status?: number }).status === 3;
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** Why the model refuses a kept trace; null when it accepts it. */
function refusalOf(name: string): string | null {
  const lines = JSON.parse(readFileSync(join(__dirname, 'traces', `${name}.json`), 'utf8')) as Line[];
  return check(lines, LADDERS).refused?.why ?? null;
}

const found = searchAll();
const sum = (of: (one: (typeof found)[number]) => number) => found.reduce((total, one) => total + of(one), 0);
const violations = sum((one) => one.violations.length);
const planted = FAULTS.map((fault) => {
  const refusal = refusalOf(traceOf(fault));
  const searched = finds(fault);
  say(`${fault.name}: its trace is ${refusal === null ? 'accepted' : `refused (${refusal})`}`);
  if (searched !== null) say(`  the search ${searched ? 'finds' : 'does not find'} it`);
  return { refused: refusal !== null, searched };
});
const result = {
  worlds: found.length,
  states: sum((one) => one.states),
  seconds: Math.round(sum((one) => one.seconds)),
  violations,
  planted: FAULTS.length,
  refused: planted.filter((one) => one.refused).length,
  searched: planted.filter(({ searched }) => searched !== null).length,
  found: planted.filter(({ searched }) => searched === true).length,
};
out(JSON.stringify(result));
const whole = result.refused === result.planted && result.found === result.searched;
const { now, wanted } = page();
if (now !== wanted) console.error('docs/model.md does not follow from test/model; run npm run guide.');
process.exitCode = violations === 0 && refusalOf('accepted') === null && whole && now === wanted ? 0 : 1;
