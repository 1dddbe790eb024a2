import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findTemporal, startTemporal } from '../../dev/temporal';
import { freePort } from '../../dev/ports';
import { fileNeeds } from '../support/needs';
import { withTemporal } from '../support/own-temporal';
import { runDirectory } from '../support/temporary-directory';

fileNeeds('Temporal');

const dataDir = join(runDirectory('temporal server'), 'data of mine');
let executable: string;
let port: number;

beforeAll(async () => {
  executable = await findTemporal();
  port = await freePort();
}, 1_200_000);

async function start(progress: string[] = []) {
  const onProgress = (text: string) => void progress.push(text);
  return startTemporal({ executable, dataDir, port, uiPort: null, sync: false, onProgress });
}

test('starts anew where another version has written the file, and says so', async () => {
  const first = await start();
  const workflowId = 'of-the-old-version';
  await withTemporal(first, ({ workflow }) =>
    workflow.start('nobodyRunsIt', { workflowId, taskQueue: 'nobody-polls-it' }),
  );
  await first.stop();
  await writeFile(join(dataDir, 'version'), 'temporal version 1.4.0 (Server 1.28.0, UI 2.38.3)\n');
  const progress: string[] = [];
  const second = await start(progress);
  expect(progress).toEqual([expect.stringMatching(/was temporal version 1\.4\.0.*is temporal version/)]);
  const { namespace } = second;
  const list = () =>
    withTemporal(second, ({ workflowService }) => workflowService.listWorkflowExecutions({ namespace }));
  expect((await list()).executions).toEqual([]);
  await second.stop();
  progress.length = 0;
  await (await start(progress)).stop();
  expect(progress).toEqual([]);
});
