import type { WorkflowHandle } from '@temporalio/client';

/** Build ids of the workers that completed the workflow tasks of a run, in order; null for one without a version. */
export async function deploymentsOf(handle: WorkflowHandle): Promise<(string | null)[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(({ workflowTaskCompletedEventAttributes: completed }) =>
    completed ? [completed.deploymentVersion?.buildId ?? null] : [],
  );
}
