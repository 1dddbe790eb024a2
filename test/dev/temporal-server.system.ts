import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Connection } from '@temporalio/client';
import { isRunning, signal, waitForEnd } from '../../dev/processes';
import { findTemporal, startTemporal, temporalDataFile, type RunningTemporal } from '../../dev/temporal';
import { SEARCH_ATTRIBUTES } from '../../domain/notification-states';
import { freePort } from '../../dev/ports';
import { startWatchdog } from '../support/watchdog';
import { fileNeeds } from '../support/needs';

fileNeeds('Temporal');

let directory: string;
let dataDir: string;
let executable: string;
let port: number;
let dismissWatchdog: () => void;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'pfqs temporal-'));
  dismissWatchdog = startWatchdog(directory);
  dataDir = join(directory, 'data of mine');
  executable = await findTemporal();
  port = await freePort();
}, 1_200_000);

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
  dismissWatchdog();
});

async function start(more: { uiPort?: number; namespace?: string; progress?: string[] } = {}) {
  const { uiPort = null, progress, ...rest } = more;
  return startTemporal({
    executable,
    dataDir,
    port,
    uiPort,
    sync: false,
    onProgress: (text) => progress?.push(text),
    ...rest,
  });
}

async function inspect(server: RunningTemporal) {
  const connection = await Connection.connect({ address: server.address });
  try {
    const { namespace } = server;
    const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
    const { executions } = await connection.workflowService.listWorkflowExecutions({ namespace });
    return { attributes: Object.keys(customAttributes ?? {}), workflows: executions.length, connection };
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

async function survives(server: RunningTemporal, workflowId: string): Promise<boolean> {
  const connection = await Connection.connect({ address: server.address });
  try {
    await connection.workflowService.describeWorkflowExecution({
      namespace: server.namespace,
      execution: { workflowId },
    });
    return true;
  } finally {
    await connection.close();
  }
}

test('knows our search attributes and shows its page', async () => {
  const uiPort = await freePort();
  const server = await start({ uiPort });
  expect((await inspect(server)).attributes).toEqual(expect.arrayContaining([...SEARCH_ATTRIBUTES]));
  const page = await fetch(server.uiUrl ?? '');
  expect(page.status).toBe(200);
  expect(await page.text()).toContain('<div id="svelte">');
  await server.stop();
  await server.stop();
  expect(await isRunning(server.pid)).toBe(false);
});

test('keeps workflows over an orderly stop and over kill -9, in a process group of its own', async () => {
  const first = await start();
  expect(() => process.kill(-first.pid, 0)).not.toThrow();
  await startSomeWorkflow(first, 'before-stop');
  await first.stop();
  const second = await start();
  await startSomeWorkflow(second, 'before-kill');
  signal(second.pid, 'SIGKILL');
  await waitForEnd(second.pid, 10_000);
  const third = await start();
  expect(await survives(third, 'before-stop')).toBe(true);
  expect(await survives(third, 'before-kill')).toBe(true);
  await third.stop();
});

test('starts anew where another version has written the file, and says so', async () => {
  const first = await start();
  await startSomeWorkflow(first, 'of-the-old-version');
  await first.stop();
  await writeFile(join(dataDir, 'version'), 'temporal version 1.4.0 (Server 1.28.0, UI 2.38.3)\n');
  const progress: string[] = [];
  const second = await start({ progress });
  expect(progress).toEqual([expect.stringMatching(/was temporal version 1\.4\.0.*is temporal version/)]);
  expect(await inspect(second)).toMatchObject({ workflows: 0 });
  await second.stop();
  progress.length = 0;
  await (await start({ progress })).stop();
  expect(progress).toEqual([]);
});

test('stops a server that an earlier run left behind and takes its place, with a new namespace', async () => {
  const left = await start();
  const progress: string[] = [];
  const next = await start({ progress, namespace: 'another' });
  expect(await isRunning(left.pid)).toBe(false);
  expect(progress).toEqual([expect.stringContaining(String(left.pid))]);
  expect(await inspect(next)).toMatchObject({ workflows: 0 });
  await next.stop();
});

test('says why it did not start: port taken, data that is none, program that is none', async () => {
  const squatter = createServer();
  await new Promise<void>((resolve) => squatter.listen(port, '127.0.0.1', resolve));
  await expect(start()).rejects.toThrow(new RegExp(`Port ${port} is in use.* set STACK_PORT`));
  await new Promise((resolve) => squatter.close(resolve));

  const broken = join(directory, 'broken');
  await mkdir(broken);
  await writeFile(temporalDataFile(broken), 'no database');
  await expect(startTemporal({ executable, dataDir: broken, port, uiPort: null })).rejects.toThrow(
    /Temporal ended while starting.*broken\.log.*not a database/s,
  );
  await expect(
    startTemporal({ executable: '/nowhere/temporal', dataDir, port, uiPort: null }),
  ).rejects.toThrow(/could not be run.*ENOENT/);
});

test('can be stopped while it starts', async () => {
  const controller = new AbortController();
  const starting = startTemporal({
    executable,
    dataDir,
    port,
    uiPort: null,
    sync: false,
    signal: controller.signal,
  });
  setTimeout(() => controller.abort(), 100);
  await expect(starting).rejects.toThrow('Stopped while starting.');
});
