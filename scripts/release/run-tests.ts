import { execFileSync } from 'node:child_process';
import { join, relative } from 'node:path';
import { runCommand, type Surroundings } from './run-command';

/** More than these have a fault in common. */
const MOST_AGAIN = 12;

/**
 * `npm test` with these arguments. As in `.ci/run`, files that failed run once more, alone: a shared machine stops for seconds, a fault
 * fails again.
 * @returns what failed beside others only; empty when everything passed at once.
 * @throws when something failed alone as well.
 */
export async function runTests(args: readonly string[], at: Surroundings): Promise<string> {
  const report = join(at.cwd, '.cache', 'release-check.json');
  const test = (...more: string[]) =>
    runCommand('npm', ['test', '--', ...more], at).then(
      () => null,
      (error: Error) => error,
    );
  const fault = await test(...args, '--json', `--outputFile=${report}`);
  if (fault === null) return '';
  const failed = execFileSync('node', ['.ci/verdict.mjs', 'failed', report], {
    cwd: at.cwd,
    env: at.environment,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((file) => file !== '');
  if (failed.length === 0 || failed.length > MOST_AGAIN) throw fault;
  const names = failed.map((file) => relative(at.cwd, file)).join(', ');
  console.log(`Once more, alone: ${names}`);
  if ((await test('-w', '1', '--runTestsByPath', ...failed)) !== null)
    throw new Error(`failed beside others and again alone, in whole or in part: ${names}`);
  return `alone: ${names}`;
}
