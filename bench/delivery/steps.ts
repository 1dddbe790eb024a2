import type postgres from 'postgres';
import type { Sql } from '../../db/postgres/connect';
import { withTemporal } from '../../testbed/own-temporal';
import { pause } from '../harness/bench';
import type { Figures } from '../harness/rounds';
import type { Stage } from '../harness/stage';
import { newestWorkflows } from '../harness/stored';
import type { Way } from './ways';

/** What a delivery costs in steps, which no noise changes: by pg_stat_statements, and by the histories of workflows. */

type AnySql = postgres.Sql | Sql;
const SAMPLE = 40;

/** Prepares both Postgres for counting. */
export async function prepareCounting({ temporalSql, database }: Stage): Promise<void> {
  for (const sql of [temporalSql, database.sql]) {
    await sql`create extension pg_stat_statements`;
    await trackStatements(sql, 'none');
  }
}

/**
 * @param run makes so many deliveries one way.
 * @returns for each delivery the statements in Temporal's databases and in ours, with BEGIN and COMMIT, and the events of its
 *   history; and the share whose first attempt was a local activity.
 */
export async function countSteps(
  stage: Stage,
  way: Way,
  { count, run }: { count: number; run: () => Promise<unknown> },
): Promise<Figures> {
  const both = [stage.temporalSql, stage.database.sql] as const;
  for (const sql of both) await trackStatements(sql, 'top');
  await run();
  const [temporal = 0, ours = 0] = await Promise.all(both.map(countStatements));
  for (const sql of both) await trackStatements(sql, 'none');
  return {
    ...(await readHistories(stage, way)),
    temporal_statements: temporal / count,
    our_statements: way === 'ours' ? ours / count : 0,
  };
}

/** Has pg_stat_statements count from nought, or not at all: counting costs time, so it is off while time is measured. */
async function trackStatements(sql: AnySql, what: 'top' | 'none'): Promise<void> {
  await sql.unsafe(`alter system set pg_stat_statements.track = '${what}'`);
  await sql`select pg_reload_conf(), pg_stat_statements_reset()`;
  // The sessions read it before their next statement.
  await pause(200);
}

/** Statements of all databases since then but for those marked as the bench's own. */
async function countStatements(sql: AnySql): Promise<number> {
  const [row] = await sql<{ calls: number }[]>`
    select sum(calls)::float8 as calls from pg_stat_statements where query not like '%/* bench */%'`;
  return row?.calls ?? Number.NaN;
}

async function readHistories(stage: Stage, way: Way): Promise<Figures> {
  const { namespace } = stage.temporal;
  const ids = await newestOf(stage, way);
  return withTemporal(stage.temporal, async (client) => {
    let [events, local] = [0, 0];
    for (const workflowId of ids) {
      const { history } = await client.workflowService.getWorkflowExecutionHistory({
        namespace,
        execution: { workflowId },
      });
      const all = history?.events ?? [];
      events += all.length;
      const first = all.find(
        (event) => event.markerRecordedEventAttributes ?? event.activityTaskScheduledEventAttributes,
      );
      if (first?.markerRecordedEventAttributes) local += 1;
    }
    return { history_events: events / ids.length, local_share: local / ids.length };
  });
}

/** Ids of the last workflows of a way. */
async function newestOf({ temporalSql, database }: Stage, way: Way): Promise<string[]> {
  if (way === 'ours') return newestWorkflows(database, SAMPLE);
  const rows = await temporalSql<{ id: string }[]>`
    select workflow_id as id from current_executions where workflow_id like 'evt_bare_%'
    order by workflow_id desc limit ${SAMPLE}`;
  return rows.map(({ id }) => id);
}
