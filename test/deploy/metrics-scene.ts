import { openCrashScene, type CrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { randomTaskQueue, type TestTemporal } from '../support/temporal';

/** A sample's name with the names of its labels. */
export type Served = ReadonlyMap<string, ReadonlySet<string>>;

/** What both processes serve together. */
export type MetricPages = Awaited<ReturnType<typeof scrapeAfterTraffic>>;

/**
 * What a real API process and a real worker process serve after some traffic: quotes, refusals, a delivery, failures, an endpoint that is
 * gone, a workflow task that fails.
 */
export async function scrapeAfterTraffic(
  temporal: TestTemporal,
  /** Watches both from before the traffic. @returns what is called after it, while they still run. */
  watch: (addresses: { readonly api: string; readonly worker: string }) => Promise<() => Promise<void>>,
) {
  const scene = await openCrashScene({
    temporal,
    environment: { TEST_LADDER_SECONDS: '0,1', FIGURES_EVERY_MS: '200' },
  });
  try {
    const [api, worker] = [await scene.api({ RATE_LIMIT_PER_MINUTE: '5' }), await scene.worker()];
    await worker.ready();
    const address = (port: number) => `http://127.0.0.1:${port}`;
    const watched = await watch({ api: address(api.internalPort), worker: address(worker.port) });
    await traffic(scene, temporal, api);
    // The SDK's own counts come a moment later.
    await until(
      async () => (await worker.metrics()).includes('temporal_workflow_task_execution_failed'),
      'a failed workflow task is counted',
    );
    await watched();
    const text = `${await api.metrics()}${await worker.metrics()}`;
    return { text, served: samplesOf(text) };
  } finally {
    await scene.close();
  }
}

async function traffic(
  scene: CrashScene,
  { env }: TestTemporal,
  api: Awaited<ReturnType<CrashScene['api']>>,
): Promise<void> {
  await scene.post(api);
  scene.receiver.behave(() => 500);
  await scene.post(api);
  await scene.ended();
  await scene.database.sql`update monthly_counts set delivered = 100`;
  expect(await scene.post(api)).toMatchObject({ status: 429 });
  // An endpoint that is disabled has a series of its own.
  await scene.database.sql`update monthly_counts set delivered = 0`;
  scene.receiver.behave(() => 410);
  await scene.post(api);
  await scene.ended();
  for (let nth = 0; nth < 4; nth += 1) await scene.quote(api);
  // No worker knows this type.
  await env.client.workflow.start('unknownWorkflow', {
    workflowId: randomTaskQueue('unknown'),
    taskQueue: scene.taskQueue,
    workflowExecutionTimeout: '30 seconds',
  });
}

/** Reads a page in Prometheus' text format. */
export function samplesOf(page: string): Served {
  const served = new Map<string, Set<string>>();
  for (const line of page.split('\n')) {
    const [, name, labels = ''] = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? /.exec(line) ?? [];
    if (name === undefined) continue;
    const known = served.get(name) ?? new Set();
    for (const [, label = ''] of labels.matchAll(/([a-zA-Z_]\w*)="/g)) known.add(label);
    served.set(name, known);
  }
  return served;
}
