import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { fileNeeds } from '../support/needs';

fileNeeds('namespaces', 'iproute', 'Temporal');

/** Its own network namespace, which ends with this process. */
const ENTER = ['--pdeathsig', 'KILL', '--', 'unshare', '--net', 'sh', '-c'];

test('a way out that is cut spends nobody’s ladder, and a slow address may win', () => {
  const jest = ['node_modules/jest/bin/jest.js', '--config', 'jest.namespace.config.cjs', '--ci'];
  const run = spawnSync(
    'setpriv',
    [...ENTER, 'ip link set lo up && exec "$@"', 'sh', process.execPath, ...jest],
    { cwd: join(__dirname, '../..'), encoding: 'utf8', timeout: 480_000, killSignal: 'SIGKILL' },
  );
  expect([run.status, run.stderr]).toEqual([0, expect.stringContaining('Tests:       3 passed, 3 total')]);
}, 500_000);
