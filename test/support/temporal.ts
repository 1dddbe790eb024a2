import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TestWorkflowEnvironment } from '@temporalio/testing';
import { DefaultLogger, Runtime } from '@temporalio/worker';
import { freePort } from '../../dev/ports';
import { answersAt } from '../../dev/temporal';
import { startWithFiles } from '../../testbed/project-process';
import { fileNeeds } from './needs';
import { demand } from './on-demand';
import type { SharedBundle, SharedTemporal } from './temporal-run';

/** The first start on a machine may have to build the server. */
const PATIENCE_MS = 1_200_000;

export interface TestTemporal {
  /** Of the run's dev server, which all files share. With time skipping: of this file's own server. */
  readonly address: string;
  readonly namespace: string;
  /** `connection`, `nativeConnection`; there from `beforeAll` on, as is the client. */
  readonly env: TestWorkflowEnvironment;
  readonly client: TestWorkflowEnvironment['client'];
}

/**
 * The run's Temporal dev server for one test file: call it at the top of the file. Files are kept apart by task queues
 * of their own (`randomTaskQueue`). Where there is no server the file's tests are skipped (`fileNeeds`).
 */
export function testTemporal(): TestTemporal {
  fileNeeds('Temporal');
  return register(async () => {
    const { address, namespace } = await demand<SharedTemporal>('temporal');
    return TestWorkflowEnvironment.createFromExistingServer({ address, namespace });
  });
}

/**
 * A time-skipping server (Java) that belongs to one test file: call it at the top of the file. Its time is one for all
 * of the file's tests, so they must not run concurrently. It has no search attributes.
 */
export function timeSkippingServer(): TestTemporal {
  fileNeeds('time-skipping Temporal');
  let server: Awaited<ReturnType<typeof startWithFiles>> | undefined;
  const temporal = register(async () => {
    const { executable } = await demand<{ executable: string }>('time-skipping');
    const port = await freePort();
    const address = `127.0.0.1:${port}`;
    // The SDK gives a server that it starts five seconds to listen; Java on a busy machine may take longer.
    server = await startWithFiles({
      name: 'time-skipping',
      command: () => [executable, String(port)],
      serves: () => answersAt({ address }, 'default'),
    });
    // `create` is private: the public ways to it either start a server of their own, or skip no time.
    return TestWorkflowEnvironment['create']({
      server: { type: 'existing' },
      address,
      supportsTimeSkipping: true,
    });
  });
  afterAll(() => server?.close());
  return temporal;
}

function register(open: () => Promise<TestWorkflowEnvironment>): TestTemporal {
  const temporal = {} as TestTemporal;
  beforeAll(async () => {
    // Once per file: Jest gives each a module registry of its own. Worker starts are no news.
    Runtime.install({ logger: new DefaultLogger('ERROR') });
    const env = await open();
    const { address, client, namespace = 'default' } = env;
    Object.assign(temporal, { env, address, client, namespace });
  }, PATIENCE_MS);
  afterAll(() => temporal.env?.teardown());
  return temporal;
}

export function randomTaskQueue(purpose = 'test'): string {
  return `${purpose}-${randomBytes(6).toString('hex')}`;
}

/** The workflows of this project, bundled once per run: `Worker.create({ workflowBundle: await prebuiltBundle() })`. */
export async function prebuiltBundle(): Promise<SharedBundle> {
  return demand<SharedBundle>('bundle');
}

/** Options of a worker's session on this queue, of no build, with the workflows of this project. */
export const sessionOptions = async ({ address, namespace }: TestTemporal, taskQueue: string) => ({
  temporal: { connection: { address }, namespace },
  taskQueue,
  workflows: { bundle: await prebuiltBundle() },
  build: null,
  mostSends: 20,
  mostWorkflowTasks: 40,
});

/**
 * The workflow bundle of another release: the one of today with a word changed wherever it stands.
 * @throws when the word is not there.
 * @returns the path of its code.
 */
export async function bundleWith(directory: string, from: string, to: string): Promise<string> {
  const code = await readFile((await prebuiltBundle()).codePath, 'utf8');
  if (!code.includes(from)) throw new Error(`there is no ${from} in the workflows`);
  const path = join(directory, `bundle-${to.replaceAll(/\W+/g, '-')}.js`);
  await writeFile(path, code.replaceAll(from, to));
  return path;
}
