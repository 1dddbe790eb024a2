import type postgres from 'postgres';
import type { Sql } from '../../db/postgres/connect';
import { withTemporal } from '../../testbed/own-temporal';
import { pause } from '../harness/bench';
import { withCpu } from '../harness/cpu';
import { say } from '../../testbed/say';
import { figure, type Figures } from '../harness/rounds';
import type { Stage } from '../harness/stage';
import { newestWorkflows } from '../harness/stored';
import { WAYS, type Way } from './ways';

/** What a delivery costs in steps, which no noise changes: by pg_stat_statements, and by the histories of workflows. */

type AnySql = postgres.Sql | Sql;
const SAMPLE = 40;
const IDLE_MS = 5_000;

/** Prepares both Postgres for counting. */
export async function prepareCounting({ temporalSql, database }: Stage): Promise<void> {
  for (const sql of [temporalSql, database.sql]) {
    await sql`create extension pg_stat_statements`;
    await trackStatements(sql, 'none');
  }
}

/**
 * @param run makes so many deliveries one way.
 * @param lists whether to print the statements on standard error.
 * @returns for each delivery the statements in Temporal's databases and in ours, with BEGIN and COMMIT, and the events of its
 *   history; and the share whose first attempt was a local activity.
 */
export async function countSteps(
  stage: Stage,
  way: Way,
  { count, run, lists }: { count: number; run: () => Promise<unknown>; lists: boolean },
): Promise<Figures> {
  const both = [stage.temporalSql, stage.database.sql] as const;
  for (const sql of both) await trackStatements(sql, 'top');
  await run();
  const [temporal = 0, ours = 0] = await Promise.all(both.map(countStatements));
  for (const sql of both) {
    if (lists) for (const line of await listStatements(sql, count)) say(`${way}: ${line}`);
    await trackStatements(sql, 'none');
  }
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

/** The most frequent of them. */
async function listStatements(sql: AnySql, deliveries: number): Promise<string[]> {
  const rows = await sql<{ calls: number; ms: number; query: string }[]>`
    select calls::float8, total_exec_time as ms, query from pg_stat_statements
    where calls >= ${deliveries / 20} and query not like '%/* bench */%' order by calls desc limit 40`;
  return rows.map(({ calls, ms, query }) => {
    const text = query.replaceAll(/\s+/g, ' ').slice(0, 140);
    return `${(calls / deliveries).toFixed(2)} × ${(ms / calls).toFixed(3)} ms: ${text}`;
  });
}

async function readHistories(stage: Stage, way: Way): Promise<Figures> {
  const { namespace } = stage.temporal;
  const ids = await newestOf(stage, way);
  // An activity without a workflow has no history.
  if (ids.length === 0) return { history_events: 0, local_share: 0 };
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

/**
 * What Temporal does for a delivery when its retention is over, in milliseconds of CPU: ended deliveries of ours are deleted, which runs
 * the same steps as the end of their retention, and one call more. The shortest retention is a day, so that no bench sees it end. What the
 * server costs while nothing happens is taken off.
 */
export async function measureRemoval(stage: Stage, count: number): Promise<Figures> {
  const { namespace, pid, postgres } = stage.temporal;
  const ids = await newestWorkflows(stage.database, count);
  const left = async () => {
    const [row] = await stage.temporalSql<{ left: number }[]>`
      select count(*)::int as left from executions e join current_executions c using (shard_id, namespace_id, workflow_id)
      where c.workflow_id = any(${ids})`;
    return row?.left ?? Number.NaN;
  };
  const measured = { processes: { temporal: pid }, postgres: { temporal_postgres: postgres.pid } };
  const cpuMs = async (work: () => Promise<unknown>): Promise<[cpu: number, elapsed: number]> => {
    const startedAt = performance.now();
    const { cpu } = await withCpu(measured, 1, work);
    const used = figure(cpu, 'temporal_cpu_ms') + figure(cpu, 'temporal_postgres_cpu_ms');
    return [used, performance.now() - startedAt];
  };
  return withTemporal(stage.temporal, async ({ workflowService }) => {
    if ((await left()) !== count) throw new Error('some deliveries are gone already');
    // What follows the end of a delivery is over.
    await pause(IDLE_MS);
    const [idle, idleMs] = await cpuMs(() => pause(IDLE_MS));
    const [used, usedMs] = await cpuMs(async () => {
      for (const workflowId of ids)
        await workflowService.deleteWorkflowExecution({ namespace, workflowExecution: { workflowId } });
      while ((await left()) > 0) await pause(250);
    });
    say(
      `removal: ${used.toFixed(0)} ms of CPU in ${usedMs.toFixed(0)} ms, idle ${idle.toFixed(0)} in ${idleMs.toFixed(0)}`,
    );
    return { removal_cpu_ms: (used - (idle * usedMs) / idleMs) / count };
  });
}

/** Ids of the last workflows of a way; those of the floors start with the name of their kind. */
async function newestOf({ temporalSql, database }: Stage, way: Way): Promise<string[]> {
  if (way === 'ours') return newestWorkflows(database, SAMPLE);
  const rows = await temporalSql<{ id: string }[]>`
    select workflow_id as id from current_executions where workflow_id like ${`evt_${WAYS[way]}_%`}
    order by workflow_id desc limit ${SAMPLE}`;
  return rows.map(({ id }) => id);
}
