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
  /** Undefined: it went well. */
  readonly fault: string | undefined;
}

const outcomes: Outcome[] = [];
/** The step under way gets a Ctrl-C as well, and ends. */
let stopped = false;
process.on('SIGINT', () => (stopped = true));

/** @returns whether it went well. */
async function step(node: string, name: string, work: () => Promise<void>): Promise<boolean> {
  if (stopped) return false;
  console.log(`\n=== Node ${node}: ${name}`);
  const startedAt = performance.now();
  const fault = await work().then(
    () => undefined,
    (error: Error) => error.message,
  );
  if (fault !== undefined) console.log(fault);
  outcomes.push({ node, step: name, seconds: (performance.now() - startedAt) / 1_000, fault });
  return fault === undefined;
}

async function checkOn(line: string): Promise<void> {
  const bin = execFileSync(join(root, 'scripts/node-release.sh'), [line], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  }).trim();
  const environment = environmentWith(bin);
  const node = execFileSync('node', ['--version'], { env: environment, encoding: 'utf8' }).trim().slice(1);
  const folder = unpackTree(root);
  const npm = (...args: string[]) => runCommand('npm', args, { cwd: folder, environment });
  const tests = options.tests.split(',').filter((name) => name !== '');
  try {
    if (!(await step(node, 'npm ci', () => npm('ci')))) return;
    await step(node, 'npm run check', () => npm('run', 'check'));
    await step(node, 'npm run build', () => npm('run', 'build'));
    await step(node, 'npm start', () => tryStart({ folder, environment }));
    if (options.tests !== 'none')
      await step(node, ['npm test', ...tests].join(' '), () => npm('test', '--', ...tests));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function report(): void {
  const rows = outcomes.map(({ node, step, seconds, fault }) =>
    [
      node.padEnd(8),
      step.padEnd(32),
      `${seconds.toFixed(0)} s`.padStart(6),
      fault === undefined ? 'ok' : 'FAILED',
    ].join('  '),
  );
  console.log(`\n${rows.join('\n')}`);
}

async function main(): Promise<void> {
  const changed = execFileSync('git', ['status', '--porcelain'], { cwd: root, encoding: 'utf8' }).trim();
  if (changed !== '') console.log(`Not committed, so not checked:\n${changed}`);
  for (const line of options.nodes.split(',')) if (!stopped) await checkOn(line);
  report();
  if (stopped || outcomes.some(({ fault }) => fault !== undefined)) process.exitCode = 1;
}

main().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
