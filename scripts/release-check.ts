/**
 * `npm run release:check`: the tree of HEAD alone, unpacked outside any repository as an adopter does, on each Node that is promised:
 * npm ci, npm run check, npm run build, npm start, npm test. About a quarter of an hour for each Node on two idle cores. Nothing is left behind.
 *
 *   npm run release:check                                     on Node 20, 22 and 24
 *   npm run release:check -- --nodes 24                       on one of them; several: 20,24
 *   npm run release:check -- --tests test/domain,test/api     with these tests only; `none`: without any
 *
 * Exit code 1 when a step fails. With CI=true no test is skipped for what the machine lacks.
 */
import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { environmentWith } from './release/environment';
import { runCommand } from './release/run-command';
import { runTests } from './release/run-tests';
import { tryStart } from './release/try-start';
import { unpackTree } from './release/unpack-tree';

const root = join(__dirname, '..');
const { values: options } = parseArgs({
  options: {
    nodes: { type: 'string', default: '20,22,24' },
    /** Arguments of `npm test`. */
    tests: { type: 'string', default: '' },
  },
});

interface Outcome {
  readonly node: string;
  readonly step: string;
  readonly seconds: number;
  readonly ok: boolean;
  /** What is to be said of it besides. */
  readonly note: string;
}

const outcomes: Outcome[] = [];
/** The step under way gets a Ctrl-C as well, and ends. */
let stopped = false;
process.on('SIGINT', () => (stopped = true));

/** @returns whether it went well. */
async function step(node: string, name: string, work: () => Promise<string | void>): Promise<boolean> {
  if (stopped) return false;
  console.log(`\n=== Node ${node}: ${name}`);
  const startedAt = performance.now();
  const { ok, note } = await work().then(
    (said) => ({ ok: true, note: said ?? '' }),
    (error: Error) => ({ ok: false, note: error.message }),
  );
  if (note !== '') console.log(note);
  outcomes.push({ node, step: name, seconds: (performance.now() - startedAt) / 1_000, ok, note });
  return ok;
}

async function checkOn(line: string): Promise<void> {
  const bin = execFileSync(join(root, 'scripts/node-release.sh'), [line], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
  const environment = environmentWith(bin);
  const node = execFileSync('node', ['--version'], { env: environment, encoding: 'utf8' }).trim().slice(1);
  const folder = unpackTree(root);
  const at = { cwd: folder, environment };
  const npm = (...args: string[]) => runCommand('npm', args, at);
  const tests = options.tests.split(',').filter((name) => name !== '');
  try {
    if (!(await step(node, 'npm ci', () => npm('ci')))) return;
    await step(node, 'npm run check', () => npm('run', 'check'));
    await step(node, 'npm run build', () => npm('run', 'build'));
    await step(node, 'npm start', () => tryStart(at));
    if (options.tests !== 'none')
      await step(node, ['npm test', ...tests].join(' '), () => runTests(tests, at));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function report(): void {
  const rows = outcomes.map(({ node, step, seconds, ok, note }) =>
    [node.padEnd(8), step.padEnd(32), `${seconds.toFixed(0)} s`.padStart(6), ok ? 'ok    ' : 'FAILED', note]
      .join('  ')
      .trimEnd(),
  );
  console.log(`\n${rows.join('\n')}`);
}

async function main(): Promise<void> {
  const changed = execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' }).trim();
  if (changed !== '') console.log(`Not committed, so not checked:\n${changed}`);
  for (const line of options.nodes.split(',')) if (!stopped) await checkOn(line);
  report();
  if (stopped || outcomes.some(({ ok }) => !ok)) process.exitCode = 1;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
