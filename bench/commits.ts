import type { ChildProcess } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { connectDatabase, type Database } from '../db/postgres/connect';
import { parseKeyRing } from '../db/endpoints/key-ring';
import { freePort } from '../dev/free-port';
import { startPostgres } from '../dev/postgres';
import { newKeyRingText } from '../test/support/notifications';
import { migrateWithLogins } from '../test/support/roles';
import { benchDirectory } from './directory';
import { TASKS, WAYS, type RanMessage, type RunMessage, type Task, type Way } from './commits/messages';
import { sampleWaits, type Waits } from './commits/waits';
import { postgresCpuMs } from './cpu';
import { endChild, nextMessage, startChild } from './delivery/children';
import { addPartners } from './delivery/partners';
import { median } from './rounds';

/**
 * `npm run bench:commits`: notifications stored, and claims made, a second by 1, 2, 4 and 8 processes at a time on one
 * Postgres: as they were until 22 November (NOTIFY inside the transaction, one lock for all claims), and as they are. Once with
 * the disk as it is, once with every flush made longer: `commit_delay` with `commit_siblings = 0` has whoever flushes the log sleep
 * that long before it, with the lock on flushing, so that others may share the flush that follows.
 */

const { values: options } = parseArgs({
  options: {
    /** One JSON object on standard output instead of the table. */
    json: { type: 'boolean', default: false },
    processes: { type: 'string', default: '1,2,4,8' },
    /** Pairs of rounds, old and ours; their order changes. */
    pairs: { type: 'string', default: '3' },
    /** Of one round. */
    ms: { type: 'string', default: '1500' },
    /** What each flush is made longer by, in microseconds; a run for each. */
    'flush-us': { type: 'string', default: '0,2000' },
  },
});

/** Each with an endpoint: a claim of 16 never finds one alone. */
const PARTNERS = 64;
const PENDING_EACH = 40;
const say = (line: string) => console.error(line);

interface Round {
  readonly perSecond: number;
  /** Notifications that a claim took, on average. */
  readonly taken: number;
  /** Of Postgres, in cores. */
  readonly cores: number;
  readonly waits: Waits;
}

interface Scene {
  readonly database: Database;
  readonly postgresPid: number;
  readonly children: readonly ChildProcess[];
  readonly partners: readonly string[];
}

async function round(scene: Scene, processes: number, message: RunMessage): Promise<Round> {
  const { database, postgresPid, partners } = scene;
  const { sql } = database;
  const children = scene.children.slice(0, processes);
  await sql`truncate notifications, credit_applications cascade`;
  if (message.task === 'claim') await fill(database, partners);
  await sql`checkpoint`;
  const sampler = sampleWaits(sql);
  const cpuBefore = await postgresCpuMs(postgresPid);
  const startedAt = performance.now();
  const answers = await Promise.all(
    children.map(async (child) => {
      const answer = nextMessage<RanMessage>(child);
      child.send(message);
      return answer;
    }),
  );
  const ms = performance.now() - startedAt;
  const cores = ((await postgresCpuMs(postgresPid)) - cpuBefore) / ms;
  const done = answers.reduce((sum, one) => sum + one.done, 0);
  const taken = answers.reduce((sum, one) => sum + one.taken, 0) / done;
  return { perSecond: (done * 1_000) / ms, taken, cores, waits: await sampler.stop() };
}

/** What is due, of applications of their own. */
async function fill({ sql }: Database, partners: readonly string[]): Promise<void> {
  await sql.unsafe(
    `insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence, body)
    select 'ntf_' || left(ulid_floor(now()), 10) || lpad(id::text, 16, '0'), 'evt_' || id, 'credit_application.accepted', partner,
      'live', 'app_' || id, 1, repeat('x', 700)
    from unnest($1::text[]) with ordinality as p (partner, at), generate_series(1, ${PENDING_EACH}) each,
      lateral (select at * 1000 + each as id) one`,
    [partners as string[]],
  );
  await sql.unsafe('analyze notifications');
}

interface Row {
  readonly task: Task;
  readonly flushUs: number;
  readonly processes: number;
  readonly rounds: Readonly<Record<Way, readonly Round[]>>;
}

async function pairs(scene: Scene, about: Omit<Row, 'rounds'>): Promise<Row> {
  const rounds: Record<Way, Round[]> = { old: [], ours: [] };
  for (let pair = 0; pair < Number(options.pairs); pair += 1) {
    for (const way of pair % 2 === 0 ? WAYS : WAYS.toReversed())
      rounds[way].push(
        await round(scene, about.processes, { task: about.task, way, ms: Number(options.ms) }),
      );
  }
  const row = { ...about, rounds };
  say(describe(row));
  return row;
}

const of = (row: Row, way: Way, pick: (round: Round) => number) => median(row.rounds[way].map(pick));
const ratio = ({ rounds }: Row) =>
  median(rounds.ours.map((ours, nth) => ours.perSecond / (rounds.old[nth]?.perSecond ?? Number.NaN)));

function describe(row: Row): string {
  const waits = (way: Way) =>
    (row.rounds[way].at(-1)?.waits ?? [])
      .slice(0, 3)
      .map(([what, share]) => `${what} ${(share * 100).toFixed(0)} %`)
      .join(', ');
  const way = (name: Way) =>
    `${name} ${of(row, name, (one) => one.perSecond).toFixed(0)}/s (${of(row, name, (one) => one.cores).toFixed(2)} cores; ${waits(name)})`;
  const what = `${row.task}, flush +${row.flushUs} us, ${row.processes} processes`;
  const taken =
    row.task === 'claim' ? `, ${of(row, 'ours', (one) => one.taken).toFixed(1)} taken by each` : '';
  return `${what}: ${way('old')}; ${way('ours')}; ours / old ${ratio(row).toFixed(2)}${taken}`;
}

function figures(rows: readonly Row[]): Record<string, number> {
  const object: Record<string, number> = {};
  for (const row of rows) {
    const name = `${row.task}_${row.flushUs}us_${row.processes}`;
    object[`${name}_ratio`] = Number(ratio(row).toFixed(2));
    for (const way of WAYS)
      object[`${name}_${way}_per_second`] = Math.round(of(row, way, (one) => one.perSecond));
  }
  return object;
}

async function main(): Promise<void> {
  const { directory, remove } = await benchDirectory('commits');
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const postgres = await startPostgres({
      dataDir: join(directory, 'postgres'),
      port: await freePort(),
      password: 'bench',
      settings: { shared_buffers: '256MB', max_wal_size: '4GB', max_connections: 200 },
    });
    closers.push(() => postgres.stop());
    await migrateWithLogins(postgres.url);
    const database = connectDatabase({
      url: postgres.url,
      poolSize: 3,
      applicationName: 'pfqs bench',
      statementTimeoutMs: 60_000,
    });
    closers.push(() => database.close());
    const urls = Array.from({ length: PARTNERS }, (_, at) => `https://partner-${at + 1}.example/hook`);
    const partners = await addPartners(database, parseKeyRing(newKeyRingText()), urls);
    const counts = options.processes.split(',').map(Number);
    const children: ChildProcess[] = [];
    for (let nth = 0; nth < Math.max(...counts); nth += 1) {
      const child = startChild('bench/commits/process.ts', {
        args: [postgres.url, ...partners],
        logFile: join(directory, 'process.log'),
      });
      closers.push(() => endChild(child));
      children.push(child);
      await nextMessage(child);
    }
    const scene = { database, postgresPid: postgres.pid, children, partners };
    const rows: Row[] = [];
    for (const flushUs of options['flush-us'].split(',').map(Number)) {
      await database.sql.unsafe(`alter system set commit_delay = ${flushUs}`);
      await database.sql.unsafe('alter system set commit_siblings = 0');
      await database.sql`select pg_reload_conf()`;
      for (const task of TASKS)
        for (const processes of counts) rows.push(await pairs(scene, { task, flushUs, processes }));
    }
    if (options.json) console.log(JSON.stringify(figures(rows)));
    else for (const row of rows) console.log(describe(row));
  } finally {
    for (const closer of closers.toReversed()) await closer();
    await remove();
  }
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
