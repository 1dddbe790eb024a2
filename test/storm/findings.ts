import type { Client } from '@temporalio/client';
import type { Database } from '../../db/postgres/connect';
import { grpcStatus } from '../../runtime/temporal/connect';
import { deliveryWorkflowId } from '../../workflows/names';
import { readable } from '../../testbed/emitted';
import { contradictions } from '../support/database';
import { keptChanges } from '../model/tools/kept';
import { accordingToModel } from '../model/tools/trace';
import type { Finding, Row } from './finding';
import { accepted, attempted, ordered, repeated, signed } from './received';
import { counted, ended, kept, money, sequences } from './stored';
import type { Kills } from './killer';
import type { Promised } from './lenders';
import type { StormSight } from './scene';
import { limited, type Tested } from './tester';

/** What a storm did, and what it was promised. */
export interface StormRecord {
  readonly promised: readonly Promised[];
  readonly tested: Tested;
  readonly kills: Kills;
}

/** Histories cost a call each: those of this many are read, evenly spread. */
const HISTORIES = 200;
/** gRPC status. */
const NOT_FOUND = 5;

/** Every notification with its attempts. */
export async function storedRows({ sql }: Pick<Database, 'sql'>): Promise<readonly Row[]> {
  return sql<Row[]>`
    select n.notification_id as id, event_id as "eventId", partner_id as "partnerId", application_id as "applicationId", sequence, body, state,
      n.generation, count(attempt_number)::int as attempts,
      (count(*) filter (where outcome = 'unknown'))::int as unknown,
      (count(*) filter (where attempt_number is not null and finished_at is null))::int as unfinished,
      (extract(epoch from min(a.started_at)) * 1000)::float8 as "firstTriedMs",
      coalesce(array_agg(failure || ' ' || coalesce(a.answer, '')) filter (where outcome = 'failed' and http_status is null),
        '{}') as unanswered
    from notifications_now n left join delivery_attempts a on a.notification_id = n.notification_id
    group by n.notification_id, event_id, partner_id, application_id, sequence, body, state, n.generation order by 1`;
}

/** Holds the invariants against the database, the receiver, the processes' outputs and Temporal. */
export async function findings(
  scene: StormSight,
  { promised, tested, kills }: StormRecord,
): Promise<Finding[]> {
  const rows = await storedRows(scene.database);
  const contradicting = await contradictions(scene.database);
  return [
    {
      invariant: '    each notification has exactly one of an end and a row in deliveries',
      looked: rows.length,
      seen: `${rows.length} notifications`,
      offenders: contradicting.map(({ id, what }) => `${id}: ${what}`),
    },
    ended(rows),
    await kept(scene, promised),
    await limited(scene, tested),
    await counted(scene),
    sequences(rows, promised),
    ordered(scene, rows),
    accepted(scene, rows),
    signed(scene, rows),
    attempted(scene, rows, kills),
    repeated(scene, rows, kills),
    await silent(scene, rows),
    {
      invariant: 'I6  quotes are answered while Temporal is down',
      looked: kills.withoutTemporal.asked,
      // A cluster has two Temporal hosts, and a run may kill workers alone.
      optional: true,
      seen: `${kills.withoutTemporal.answered} of ${kills.withoutTemporal.asked} in ${kills.counts.temporal} outages`,
      offenders: kills.withoutTemporal.asked > 0 && kills.withoutTemporal.answered === 0 ? ['none was'] : [],
    },
    {
      invariant: 'I7  every answer has a request id and the envelope',
      looked: scene.answers.count,
      seen: `${scene.answers.count} answers`,
      offenders: scene.improperAnswers,
    },
    await money(scene),
    accordingToModel(await keptChanges(scene.database.sql)),
  ];
}

/** What processes wrote, and what Temporal keeps: of an event not even its id. */
export async function silent(
  { receiver, hidden, temporal, outputs }: Pick<StormSight, 'receiver' | 'hidden' | 'temporal' | 'outputs'>,
  rows: readonly Row[],
): Promise<Finding> {
  const every = Math.max(Math.floor(rows.length / HISTORIES), 1);
  const read = rows.filter((_row, at) => at % every === 0);
  const histories: string[] = [];
  for (const { id, generation } of read)
    for (let each = 1; each <= generation; each += 1)
      histories.push(await historyOf(temporal.client, deliveryWorkflowId(id, each)));
  const kept = histories.join('\n');
  const said = outputs().join('\n');
  const told = `${said}\n${kept}`;
  const secrets = hidden.flatMap((text) => [text, text.replace(/^\w+[_:]/, '')]);
  const signatures = receiver.received
    .filter((_one, at) => at % every === 0)
    .flatMap(({ headers }) => [
      ...String(headers['webhook-signature'])
        .split(' ')
        .map((signature) => signature.replace(/^v1a?,/, '')),
      String(headers['service-signature']).replace(/^.*v1=/, ''),
    ]);
  const found = [...secrets, ...signatures].filter((text) => told.includes(text));
  const events = read
    .filter(({ eventId }) => kept.includes(eventId))
    .map(({ id }) => `${id}: event in history`);
  return {
    invariant: 'I8  no key, secret or signature in logs or histories; ids only in Temporal',
    looked: Math.min(said.length, kept.trim().length),
    seen: `${said.length} characters of logs, ${histories.filter(Boolean).length} histories`,
    offenders: [
      ...found.map((text) => `${text.slice(0, 6)}… was told`),
      ...events,
      ...(kept.includes(receiver.url) ? ['an address in a history'] : []),
    ],
  };
}

/** Everything that Temporal keeps of a workflow, payloads decoded; nothing for one that it does not know. */
async function historyOf(client: Client, workflowId: string): Promise<string> {
  try {
    const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
    return JSON.stringify(events, readable);
  } catch (error) {
    if (grpcStatus(error) === NOT_FOUND) return '';
    throw error;
  }
}

/** The report, a line for each invariant. */
export const reportText = (all: readonly Finding[]) =>
  all
    .map(({ invariant, looked, seen, offenders }) => {
      const verdict = offenders.length > 0 ? 'BROKEN' : looked > 0 ? 'holds ' : 'not tried';
      const first = offenders.slice(0, 5).map((one) => `\n            ${one}`);
      return `${verdict} ${invariant}: ${seen}${first.join('')}`;
    })
    .join('\n');

/** Time from the change to its delivery, in milliseconds. */
export async function delays({ database }: StormSight): Promise<{ p50: number; p99: number; most: number }> {
  const [row] = await database.sql<{ p50: number; p99: number; most: number }[]>`
    select percentile_cont(0.5) within group (order by ms) as p50, percentile_cont(0.99) within group (order by ms) as p99,
      max(ms)::float8 as most
    from (select (extract(epoch from delivered_at - created_at) * 1000)::float8 as ms
      from notifications_now where delivered_at is not null) d`;
  return row ?? { p50: Number.NaN, p99: Number.NaN, most: Number.NaN };
}
