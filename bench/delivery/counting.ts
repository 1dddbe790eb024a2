import { Client, Connection } from '@temporalio/client';
import { runRound, settled, type Way } from './rounds';
import type { Stage } from './stage';
import { countStatements, listStatements, trackStatements } from './statements';

/** What one delivery costs in steps, which no noise changes. */
export interface Steps {
  readonly historyEvents: number;
  /** In Temporal's databases, and in ours; with BEGIN and COMMIT. */
  readonly temporalStatements: number;
  readonly ourStatements: number;
  /** Share whose first attempt was a local activity. */
  readonly localShare: number;
}

const SAMPLE = 40;

/** Sends some notifications one way and counts what that takes: by pg_stat_statements, and by their histories. */
export async function countSteps(
  stage: Stage,
  way: Way,
  count: number,
  /** Told which statements these were. */
  tell?: (line: string) => void,
): Promise<Steps> {
  const { database, temporalSql } = stage;
  const both = [temporalSql, database.sql] as const;
  for (const sql of both) await trackStatements(sql, 'top');
  await runRound(stage, way, { count, inFlight: 16, restMs: 0 });
  await settled(stage);
  const [temporal = 0, ours = 0] = await Promise.all(both.map(countStatements));
  if (tell) {
    for (const sql of both) for (const line of await listStatements(sql, count)) tell(`${way}: ${line}`);
  }
  for (const sql of both) await trackStatements(sql, 'none');
  return {
    ...(await histories(stage, way)),
    temporalStatements: temporal / count,
    ourStatements: way === 'ours' ? ours / count : 0,
  };
}

async function histories(stage: Stage, way: Way) {
  const { address, namespace } = stage.temporal;
  const connection = await Connection.connect({ address });
  try {
    const client = new Client({ connection, namespace });
    let events = 0;
    let local = 0;
    const ids = await newest(stage, way);
    // An activity without a workflow has no history.
    if (ids.length === 0) return { historyEvents: 0, localShare: 0 };
    for (const id of ids) {
      const { history } = await client.workflowService.getWorkflowExecutionHistory({
        namespace,
        execution: { workflowId: id },
      });
      const all = history?.events ?? [];
      events += all.length;
      const first = all.find(
        (event) => event.markerRecordedEventAttributes ?? event.activityTaskScheduledEventAttributes,
      );
      if (first?.markerRecordedEventAttributes) local += 1;
    }
    return { historyEvents: events / ids.length, localShare: local / ids.length };
  } finally {
    await connection.close();
  }
}

/** Ids of the last workflows of a way; the floors' carry its name. */
async function newest({ temporalSql, database }: Stage, way: Way): Promise<string[]> {
  if (way === 'ours') {
    const rows = await database.sql<{ id: string }[]>`
      select 'notification/' || notification_id || '/' || generation as id
      from notifications order by notification_id desc limit ${SAMPLE}`;
    return rows.map(({ id }) => id);
  }
  const rows = await temporalSql<{ id: string }[]>`
    select workflow_id as id from current_executions where workflow_id like ${`evt_${way}_%`}
    order by workflow_id desc limit ${SAMPLE}`;
  return rows.map(({ id }) => id);
}
