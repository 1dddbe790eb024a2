import { appendOperatorEvents } from '../../db/audit/operator-events';
import { listProcesses, writeBeat, writeStop, type Beat } from '../../db/processes';
import { databaseFigures, refreshFigures } from '../../db/figures';
import { openApplication } from '../support/applications';
import { empty, openDatabaseAt } from '../support/database';
import { asRole } from '../../testbed/roles';
import { advanceServiceClock, newPartner, setServiceClock } from '../../testbed/notifications';
import { startTestService } from '../support/service';
import { startTcpProxy } from '../support/tcp-proxy';
import { testTemporal } from '../support/temporal';
import { until } from '../../testbed/until';
import { OTHER_DEPS, runWith, useOps } from './run';

const ops = useOps();
const { database } = ops;
const temporal = testTemporal();
const API: Beat = { processId: 'one', kind: 'api', host: 'a', build: '1.2.0', temporal: false };
const WORKER: Beat = { processId: 'two', kind: 'worker', host: 'b', build: '1.2.0', temporal: true };
const beat = (one: Beat) => writeBeat(database.db, one);
const run = () => ops.run(['status']);

beforeEach(async () => {
  await empty(database, 'processes', 'outages', 'backups', 'delivery_pauses');
  await database.sql.unsafe(`alter table operator_events disable trigger user; delete from operator_events;
    alter table operator_events enable trigger user`);
  ops.temporal = {
    describeDeployment: async () => ({ current: '1.2.0', ramping: null, builds: [] }),
    whatIsMissing: async () => null,
  };
  await beat(API);
  await beat(WORKER);
  await database.sql`insert into backups default values`;
});
afterEach(() => setServiceClock(database, null));

test('all is well: exit code 0, with builds, ages and the last backup', async () => {
  const { code, out, err } = await run();
  expect({ code, err }).toEqual({ code: 0, err: '' });
  expect(out).toMatch(/^Well\.\n/);
  expect(out).toMatch(/API 1 +API process a \(1\.2\.0\), up \d+ s, seen \d+ s ago/);
  expect(out).toMatch(/Worker 1 +worker b \(1\.2\.0\)/);
  expect(out).toMatch(/Postgres +leader, 0 standbys/);
  expect(out).toMatch(/Temporal +reached, current build: 1\.2\.0/);
  expect(out).toMatch(/Last backup +\d+ s ago/);
  expect(await ops.json('status')).toMatchObject({
    well: true,
    problems: [],
    postgres: { role: 'leader' },
    processes: [{ kind: 'api' }, { kind: 'worker', lost: false }],
    temporal: { current: '1.2.0' },
  });
});

test('ages are by the clock of the database, which is ten minutes behind this machine', async () => {
  await advanceServiceClock(database, -600);
  await database.sql`delete from processes`;
  await beat(API);
  await beat(WORKER);
  const { partnerId } = await newPartner(database);
  await ops.json('webhooks', 'test', '--partner', partnerId, '--environment', 'sandbox');
  expect((await run()).out).toMatch(/API 1 +API process a \(1\.2\.0\), up \d s, seen \d s ago/);
  expect(await ops.text('notifications', 'list', '--partner', partnerId)).toMatch(/ \d s │/);
  await empty(database, 'deliveries', 'notifications');
});

/** As whoever has the password of a login may. In this database alone, because other tests use the login too. */
async function loginSets(setting: string): Promise<void> {
  const api = openDatabaseAt(asRole(database.url, 'api'));
  const name = new URL(database.url).pathname.slice(1);
  await api.sql.unsafe(`alter role current_user in database ${name} ${setting}`);
  await api.close();
}
afterEach(() => loginSets('reset all'));

test('settings that a login has made for itself are named, with what takes them away', async () => {
  await loginSets(`set statement_timeout = '1ms'`);
  const { code, out } = await run();
  expect(code).toBe(1);
  expect(out).toMatch(
    /Postgres: somebody has set statement_timeout=1ms for a login: ALTER ROLE quotes_api IN DATABASE \S+ RESET ALL/,
  );
  expect((await databaseFigures(database.db)).loginSettings).toBe(1);
  const { postgres } = JSON.parse((await ops.run(['status', '--json'])).out);
  expect(postgres.login_settings).toMatchObject([{ login: 'quotes_api', setting: 'statement_timeout=1ms' }]);
  await loginSets('reset all');
  expect((await run()).code).toBe(0);
});

test('a Postgres that was told to take no writes is named', async () => {
  const name = new URL(database.url).pathname.slice(1);
  await database.sql.unsafe(`alter database ${name} set default_transaction_read_only = on`);
  try {
    expect((await ops.run(['status'])).out).toMatch(/! Postgres: it takes no writes/);
  } finally {
    await database.sql.unsafe(`alter database ${name} reset all`);
  }
});

const currentIs = (current: string | null) => async () => {
  const describeDeployment = async () => ({ current, ramping: null, builds: [] });
  ops.temporal = { ...ops.temporal, describeDeployment };
};
const contradictions = (environment: 'sandbox' | 'live', count: number) =>
  appendOperatorEvents(
    database.db,
    Array.from({ length: count }, () => ({
      kind: 'lender_contradiction',
      partnerId: 'P100001',
      environment,
      endpointId: null,
      details: { lender: 'lender_b' },
    })),
  );
const partnerFails = async (set: string) => {
  const { endpointId } = await newPartner(database);
  await database.sql.unsafe(`update webhook_endpoints set ${set} where endpoint_id = '${endpointId}'`);
};
test.each<[string, RegExp, () => Promise<unknown>]>([
  ['the API is away', /API: no process runs/, () => database.sql`delete from processes where kind = 'api'`],
  ['no worker runs', /Workers: none runs/, () => database.sql`delete from processes where kind = 'worker'`],
  ['a worker was stopped in order', /Workers: none runs/, () => writeStop(database.db, 'two')],
  ['a process was lost', /API process a \(1\.2\.0\) was last seen/, () => advanceServiceClock(database, 60)],
  [
    'a worker lost Temporal',
    /worker b \(1\.2\.0\) does not reach Temporal/,
    () => database.sql`update processes set temporal_at = service_now() - interval '2 minutes'`,
  ],
  [
    'a process is in trouble',
    /API process a \(1\.2\.0\): counts rate limits for itself/,
    () => beat({ ...API, trouble: 'counts rate limits for itself' }),
  ],
  ['Temporal is away', /Temporal cannot be reached/, async () => void (ops.temporal = {})],
  ['no build is current', /No build is current: workers send nothing/, currentIs(null)],
  [
    'no worker is of the current build',
    /Build 1\.3\.0 is current, and no worker is of it \(running: 1\.2\.0\)/,
    currentIs('1.3.0'),
  ],
  [
    'an endpoint was disabled',
    /disabled \(gone\): its notifications are held/,
    () => partnerFails(`state = 'disabled', disabled_reason = 'gone'`),
  ],
  ['an endpoint fails', /has failed for \d/, () => partnerFails(`failing_since = '2026-11-20'`)],
  [
    'a partner is paused for long',
    /Paused: for more than a day/,
    async () => database.sql`
      insert into delivery_pauses (partner_id, environment, paused_by, paused_at)
      values (${(await newPartner(database)).partnerId}, 'sandbox', 'jane', service_now() - interval '2 days')`,
  ],
  [
    'the backup is old',
    /Backup: none in the last 26 hours/,
    () => database.sql`update backups set completed_at = '2026-11-19'`,
  ],
  [
    'a lender contradicted itself four times in a day',
    /Lender lender_b contradicted the state of an application 4 times in 24 h: ops events list/,
    () => contradictions('live', 4),
  ],
])('%s: exit code 1, and it says so first', async (_, said, happens) => {
  await database.sql`update webhook_endpoints set state = 'removed'`;
  await happens();
  const { code, out, err } = await run();
  expect(code).toBe(1);
  expect(out).toMatch(/^Not well:\n {2}! /);
  expect(out).toMatch(said);
  expect(err).toMatch(/^error: not well: \d found/);
});

test('what lenders contradicted is a line, and wrong only when it happened often in live within a day', async () => {
  await database.sql`update webhook_endpoints set state = 'removed'`;
  const line = async () => {
    const { code, out } = await run();
    return [code, /^Lenders +(.*)$/m.exec(out)?.[1]];
  };
  expect(await line()).toEqual([0, 'none contradicted a state in 24 h']);
  await contradictions('sandbox', 9);
  await contradictions('live', 3);
  expect(await line()).toEqual([
    0,
    'lender_b sandbox contradicted a state 9 times in 24 h; lender_b live contradicted a state 3 times in 24 h',
  ]);
  expect(await ops.json('status')).toMatchObject({
    lender_contradictions: [
      { lender: 'lender_b', environment: 'sandbox', count: 9 },
      { lender: 'lender_b', environment: 'live', count: 3 },
    ],
  });
});

test('workers without a build need no current one', async () => {
  await currentIs(null)();
  await database.sql`update processes set build = null`;
  await database.sql`update webhook_endpoints set state = 'removed'`;
  expect((await run()).code).toBe(0);
});

test('a lost process counts until another starts on its host; one start replaces one process', async () => {
  await beat({ ...WORKER, processId: 'three' });
  await advanceServiceClock(database, 60);
  await beat(API);
  const lost = async () => (await listProcesses(database.db)).filter((one) => one.lost).length;
  expect(await lost()).toBe(2);
  // On another host it is a further process.
  await beat({ ...WORKER, processId: 'four', host: 'c' });
  expect(await lost()).toBe(2);
  await beat({ ...WORKER, processId: 'five' });
  expect(await lost()).toBe(1);
  await beat({ ...WORKER, processId: 'six' });
  expect((await run()).code).toBe(0);
  // So does one that has been stopped in order since.
  await writeStop(database.db, 'six');
  expect((await run()).code).toBe(0);
});

test('a worker that has just started has the time of three beats to reach Temporal', async () => {
  const fresh = { ...WORKER, processId: 'fresh', temporal: false };
  await beat(fresh);
  expect((await run()).code).toBe(0);
  await advanceServiceClock(database, 60);
  await beat(API);
  await beat(WORKER);
  await beat(fresh);
  expect(await run()).toMatchObject({ code: 1, out: expect.stringContaining('does not reach Temporal') });
});

test('Postgres is away, or accepts and says nothing: it says so within seconds, and what Temporal says', async () => {
  const silent = await startTcpProxy({ port: 1 });
  silent.swallow(true);
  for (const port of [silent.port, 1]) {
    const url = `postgres://ops@127.0.0.1:${port}/quotes`;
    const outcome = await runWith({ ...OTHER_DEPS, connect: () => openDatabaseAt(url) }, ['status --json']);
    expect(outcome.code).toBe(1);
    expect(outcome.json()).toMatchObject({
      well: false,
      postgres: { unreachable: expect.any(String) },
      temporal: { unreachable: expect.stringContaining('192.0.2.9') },
    });
  }
  await silent.close();
});

/** While nothing can read a table. */
async function withoutTable<T>(table: string, task: () => Promise<T>): Promise<T> {
  const other = openDatabaseAt(database.url);
  try {
    let done: T | undefined;
    await other.sql.begin(async (tx) => {
      await tx.unsafe(`lock table ${table} in access exclusive mode`);
      done = await task();
    });
    return done as T;
  } finally {
    await other.close();
  }
}

test('Postgres is slow: it says so, and not that it is away', async () => {
  const { code, out } = await withoutTable('processes', run);
  expect(code).toBe(1);
  expect(out).toMatch(/^Not well:\n {2}! Postgres answers, but slowly/);
  expect(out).toMatch(/Postgres +leader, slow/);
});

test('deliveries are shown as a worker has counted them, with the age; without that they are counted, unless it takes long', async () => {
  await database.sql`update webhook_endpoints set state = 'removed'`;
  await database.sql`truncate figures`;
  const shown = async () => {
    const { out } = await run();
    return ['Backlog', 'Deliveries'].map((name) => new RegExp(`^${name} +(.*)$`, 'm').exec(out)?.[1]);
  };
  const [, counted = ''] = await shown();
  expect(counted).toMatch(/^\d+ queued, \d+ started, \d+ held, counted 0 s ago$/);
  expect(await withoutTable('deliveries', shown)).toEqual([
    'not known: no worker has counted lately, and it takes long',
    undefined,
  ]);
  await openApplication(database, { partnerId: (await newPartner(database)).partnerId });
  await database.sql`insert into operator_events (kind) values ('workflows_lost')`;
  await database.sql`update deliveries set state = 'started', started_at = service_now() - interval '1 minute'`;
  expect((await shown())[1]).toMatch(
    / [1-9]\d* started \([1-9]\d* of them wait to be looked for in Temporal/,
  );
  await database.sql`update deliveries set checked_at = service_now()`;
  expect((await shown())[1]).toMatch(/ [1-9]\d* started, /);
  const monotonicMs = () => performance.now();
  const storedAt = async () => (await database.sql`select counted_at::text as at from figures`)[0]?.['at'];
  await Promise.all([1, 2, 3].map(() => refreshFigures(database.db, 60_000, monotonicMs)));
  const first = await storedAt();
  await refreshFigures(database.db, 60_000, monotonicMs);
  expect(await storedAt()).toBe(first);
  expect((await withoutTable('deliveries', shown))[1]).toMatch(/ held, counted \d s ago$/);
  // Nobody counts any more.
  await advanceServiceClock(database, 300);
  await beat(API);
  await beat(WORKER);
  expect((await withoutTable('deliveries', shown))[0]).toMatch(/^not known/);
});

test('--watch shows it again until it is interrupted', async () => {
  const running = ops.run(['status --watch 1']);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  ops.interruption.abort();
  const { code, out } = await running;
  ops.interruption = new AbortController();
  expect(code).toBe(0);
  expect(out.split('Well.').length).toBeGreaterThan(3);
});

test('when all workers were away, or Temporal, the first beat after it leaves a row; a short gap leaves none', async () => {
  const outages = async () => [
    ...(await database.sql`
      select kind, extract(epoch from ended_at - began_at)::int as seconds from outages order by round(extract(epoch from began_at)), kind`),
  ];
  await advanceServiceClock(database, 20);
  await beat({ ...WORKER, temporal: false });
  expect(await outages()).toEqual([]);
  await advanceServiceClock(database, 60);
  await beat({ ...WORKER, temporal: false });
  expect(await outages()).toEqual([]);
  await beat({ ...WORKER, processId: 'three' });
  expect(await outages()).toMatchObject([{ kind: 'temporal', seconds: 60 }]);
  await advanceServiceClock(database, 3_600);
  await Promise.all(['four', 'five'].map((processId) => beat({ ...WORKER, processId })));
  expect(await outages()).toMatchObject([
    { kind: 'temporal', seconds: 60 },
    // While no worker runs, or none reaches Postgres, nothing is known of Temporal.
    { kind: 'workers', seconds: 3_540 },
  ]);
  await advanceServiceClock(database, 100_000);
  await beat(WORKER);
  expect((await listProcesses(database.db)).map(({ kind }) => kind)).toEqual(['worker']);
});

test('API and worker of a service write that they run, and that they were stopped', async () => {
  const service = await startTestService(temporal);
  const { api } = service;
  try {
    const processes = async () => listProcesses(api.database.db);
    await until(
      async () =>
        (await processes()).some(({ kind, withoutTemporal }) => kind === 'worker' && !withoutTemporal),
      'the worker has written that it reaches Temporal',
    );
    expect(await processes()).toMatchObject([
      { kind: 'api', lost: false },
      { kind: 'worker', lost: false },
    ]);
  } finally {
    await service.worker.close();
  }
  expect((await listProcesses(api.database.db)).map(({ kind }) => kind)).toEqual(['api']);
  await service.receiver.close();
  await api.close();
});
