import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import type { StackInfo } from '../../dev/stack';
import { findTemporal } from '../../dev/temporal';
import { freePort } from '../../dev/ports';
import { emitStackLogs } from '../../testbed/emitted';
import { stackEnvironment } from '../support/stack-environment';
import { startNode } from '../../testbed/project-process';
import { runDirectory } from '../../testbed/temporary-directory';
import { fileNeeds } from '../support/needs';

fileNeeds('Temporal');

const project = join(__dirname, '..', '..');
const directory = runDirectory('demo');

beforeAll(() => findTemporal(), 1_200_000);

const demo = (dataDir: string) =>
  startNode(['--import', 'tsx', 'bin/demo.ts', directory], {
    cwd: project,
    environment: { DATA_DIR: dataDir },
  });

/** Whatever reaches the receiver's port is listed; only its signature tells whose it is. */
async function postAsStranger(dataDir: string): Promise<void> {
  const { receiverUrl, caFile } = JSON.parse(
    await readFile(join(dataDir, 'stack.json'), 'utf8'),
  ) as StackInfo;
  const dispatcher = new Agent({ connect: { ca: await readFile(caFile, 'utf8') } });
  const created = '{"event_type":"credit_application.created","data":null}';
  for (const body of ['null', '7', '{"event_type":"x"}', created]) {
    const answer = await request(`${receiverUrl}/webhooks`, { method: 'POST', dispatcher, body });
    expect(answer.statusCode).toBe(401);
    await answer.body.dump();
  }
  await dispatcher.close();
}

test('says what to do when no stack runs, or one ran once', async () => {
  const never = demo(join(directory, 'nothing'));
  expect(await never.ended).toBe(1);
  expect(never.output()).toMatch(/^The stack is not running .*npm start.*\n$/);

  const once = join(directory, 'once');
  await mkdir(once);
  await writeFile(
    join(once, 'stack.json'),
    JSON.stringify({ internalUrl: `http://127.0.0.1:${await freePort()}` }),
  );
  const gone = demo(once);
  expect(await gone.ended).toBe(1);
  expect(gone.output()).toMatch(/^The stack is not running \(nobody answers/);
}, 60_000);

test('on a running stack three applications are simulated, and all arrives verified and in order', async () => {
  const dataDir = join(directory, 'data');
  const stack = startNode(['--import', 'tsx', 'bin/start.ts', directory], {
    cwd: project,
    environment: await stackEnvironment(dataDir),
    channel: true,
  });
  try {
    await stack.waitFor(/Webhooks work now/, 90_000);
    // A second run finds what the first one left, and what strangers have posted.
    for (let times = 0; times < 2; times += 1) {
      await postAsStranger(dataDir);
      const run = demo(dataDir);
      const code = await run.ended;
      expect(run.output()).toContain('All arrived, verified, in order.');
      expect(code).toBe(0);
      const got = [
        ...run.output().matchAll(/receiver got +(\d+) +credit_application\.(\w+) +signature verified/g),
      ];
      expect(got.map(([, sequence, status]) => `${sequence} ${status}`).join(' ')).toBe(
        [
          '1 created 2 submitted 3 referred 4 accepted 5 signed 6 ready 7 activated 8 paid_out 9 completed',
          '1 created 2 submitted 3 accepted 4 signed 5 ready 6 activated 7 paid_out 8 completed 9 refunded',
          '1 created 2 submitted 3 declined',
        ].join(' '),
      );
    }
  } finally {
    await stack.end('SIGTERM');
    emitStackLogs(dataDir);
  }
}, 300_000);
