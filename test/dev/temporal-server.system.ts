import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { findTemporal, startTemporal, type RunningTemporal } from '../../dev/temporal';
import { freePort } from '../../dev/ports';
import { fileNeeds } from '../support/needs';
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

async function workflowsOf({ address, namespace }: RunningTemporal): Promise<number> {
  const connection = await Connection.connect({ address });
  try {
    return (await connection.workflowService.listWorkflowExecutions({ namespace })).executions.length;
  } finally {
    await connection.close();
  }
}

async function startSomeWorkflow(server: RunningTemporal, workflowId: string): Promise<void> {
  const connection = await Connection.connect({ address: server.address });
  await connection.workflowService.startWorkflowExecution({
    namespace: server.namespace,
    workflowId,
    requestId: workflowId,
    workflowType: { name: 'nobodyRunsIt' },
    taskQueue: { name: 'nobody-polls-it' },
  });
  await connection.close();
}

test('starts anew where another version has written the file, and says so', async () => {
  const first = await start();
  await startSomeWorkflow(first, 'of-the-old-version');
  await first.stop();
  await writeFile(join(dataDir, 'version'), 'temporal version 1.4.0 (Server 1.28.0, UI 2.38.3)\n');
  const progress: string[] = [];
  const second = await start(progress);
  expect(progress).toEqual([expect.stringMatching(/was temporal version 1\.4\.0.*is temporal version/)]);
  expect(await workflowsOf(second)).toBe(0);
  await second.stop();
  progress.length = 0;
  await (await start(progress)).stop();
  expect(progress).toEqual([]);
});
