import { addEndpoint, newKeyRingText, standingOf, storeTest } from '../../testbed/notifications';
import { createPartner } from '../../db/catalogue/partners';
import {
  certificateFor,
  HOST,
  authority,
  answering,
  closeAll,
  closeLater,
  startRawReceiver,
} from '../outbound/partner';
import { useDatabase } from '../support/database';
import { until } from '../../testbed/until';
import { readable } from '../../testbed/emitted';
import { localActivitiesOf, warmUp } from '../support/fast-path';
import { randomTaskQueue, testTemporal } from '../support/temporal';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process';

/** What a partner writes, wherever it can, and what a database puts into its errors. */
const WORDS = 'words4711 jane doe';
const VALUE = 'value4711';
const BODY = `Content-Length: ${WORDS.length}\r\n\r\n${WORDS}`;
const HEADERS = `X-Words4711: ${WORDS}\r\nSet-Cookie: ${WORDS}\r\n`;
const ANSWERS = {
  delivered: `HTTP/1.1 200 ${WORDS}\r\n${HEADERS}${BODY}`,
  broken: `HTTP/1.1 500 ${WORDS}\r\nRetry-After: ${WORDS}\r\n${HEADERS}${BODY}`,
  redirect: `HTTP/1.1 302 ${WORDS}\r\nLocation: https://words4711.example/words4711\r\n${HEADERS}${BODY}`,
  gone: `HTTP/1.1 410 ${WORDS}\r\n${HEADERS}${BODY}`,
  'no HTTP': `${WORDS}\r\n${WORDS}\r\n`,
  'a bad header': `HTTP/1.1 200 OK\r\n${WORDS}: x\r\n\r\n${WORDS}`,
  'a bad length': `HTTP/1.1 200 OK\r\nContent-Length: ${WORDS}\r\n\r\n${WORDS}`,
  'a large header': `HTTP/1.1 200 OK\r\nX-Words4711: ${WORDS.repeat(2_000)}\r\n\r\n`,
  'many hints': `HTTP/1.1 103 ${WORDS}\r\n${HEADERS}\r\n`.repeat(21),
  upgrade: `HTTP/1.1 101 ${WORDS}\r\nConnection: upgrade\r\nUpgrade: words4711\r\n\r\n${WORDS}`,
  'another certificate': '',
} as const;
type Kind = keyof typeof ANSWERS;
const KINDS = Object.keys(ANSWERS) as Kind[];
const partnerOf = (kind: Kind) => `P2${String(KINDS.indexOf(kind)).padStart(5, '0')}`;

const temporal = testTemporal();
const taskQueue = randomTaskQueue('words');
const keys = newKeyRingText();
let worker: WorkerProcess;

// Before the database goes.
afterAll(async () => {
  await worker?.close();
  await closeAll();
});
const database = useDatabase();
beforeAll(async () => {
  const ports: number[] = [];
  for (const kind of KINDS) {
    const certificate = kind === 'another certificate' ? 'words4711.partner.test' : HOST;
    const tls = await certificateFor(certificate);
    const receiver = closeLater(await startRawReceiver(answering(ANSWERS[kind]), { tls }));
    ports.push(receiver.port);
    const partnerId = partnerOf(kind);
    await createPartner(database.db, { partnerId, name: 'Example' });
    await addEndpoint(database, { partnerId, url: receiver.url, keyRing: keys });
  }
  worker = await startWorkerProcess({
    databaseUrl: database.url,
    temporal,
    taskQueue,
    keys,
    receiver: {
      ca: (await authority).cert,
      environment: {
        ENVIRONMENT: 'development',
        WEBHOOK_LOCAL_TARGETS: ports.map((port) => `${HOST}:${port}`).join(','),
      },
    },
    environment: { TEST_LADDER_SECONDS: '0,1' },
  });
  await worker.ready();
});

const send = async (kind: Kind) => (await storeTest(database, { partnerId: partnerOf(kind) })).notificationId;
const ended = (id: string) =>
  until(async () => /delivered|failed/.test((await standingOf(database, id)).state), 'its end');

/** Everything that Temporal keeps of this file's workflows, and tells of them. */
async function told(): Promise<string> {
  const { workflow } = temporal.client;
  const texts: string[] = [];
  for await (const { workflowId, runId } of workflow.list({ query: `TaskQueue = '${taskQueue}'` })) {
    const handle = workflow.getHandle(workflowId, runId);
    const description = await handle.describe();
    const summary = await description.staticSummary();
    const details = await handle.query('__temporal_workflow_metadata');
    const story = await handle.query('progress');
    const history = await handle.fetchHistory();
    texts.push(JSON.stringify({ description, summary, details, story, history }, readable));
  }
  return texts.join('\n');
}

/** Lets the database refuse what is written to attempts, with values in whatever an error has. */
const refuse = (when: 'insert' | 'update') =>
  database.sql.unsafe(`
    create or replace function refuse() returns trigger language plpgsql as $$ begin
      raise exception '${VALUE} %', to_jsonb(new) using detail = '${VALUE}', hint = '${VALUE}', table = 'delivery_attempts';
    end $$;
    create trigger refuse before ${when} on delivery_attempts for each row execute function refuse()`);
const relent = () => database.sql.unsafe('drop trigger refuse on delivery_attempts');
const failures = (activityType: string) =>
  worker
    .output()
    .split('\n')
    .filter((line) => line.includes('Activity failed') && line.includes(activityType));

test('what a partner answers is for its attempts alone: not in histories, not in the log', async () => {
  const ids = await Promise.all(KINDS.map(send));
  await Promise.all(ids.map(ended));
  const attempts = await database.sql`
    select partner_id, outcome, failure, answer from delivery_attempts join notifications using (notification_id)`;
  const heard = attempts.filter(({ answer }) => String(answer).includes('words4711'));
  expect(new Set(heard.map(({ partner_id }) => partner_id as string))).toEqual(
    new Set((['delivered', 'broken', 'redirect', 'gone'] as const).map(partnerOf)),
  );
  expect(new Set(attempts.map(({ failure }) => failure as string | null))).toEqual(
    new Set([null, 'http_status', 'redirect', 'gone', 'protocol', 'tls']),
  );
  expect(await told()).toContain('answered 500');
});

test('nor is what a database says when it fails, with what it was given', async () => {
  await refuse('update');
  const regular = await Promise.all([send('broken'), send('delivered')]);
  await until(() => failures('recordResult').length > 3, 'failures of records');
  await relent();
  await Promise.all(regular.map(ended));

  await warmUp({ database, client: temporal.client }, partnerOf('delivered'));
  await refuse('insert');
  const fast = await send('delivered');
  await until(() => failures('sendAttempt').length > 2, 'failures of sends');
  await relent();
  await ended(fast);
  expect(await localActivitiesOf(temporal.client, fast)).toEqual(['attemptAtOnce']);
  expect(failures('attemptAtOnce')).toHaveLength(1);

  const histories = await told();
  // What an operator needs is there.
  expect(histories).toMatch(/Error: the worker's log says more.*PostgresError \(P0001 delivery_attempts\)/);
  expect(worker.output()).toContain('the answer of an endpoint was not kept');
  expect(worker.output()).toMatch(/"type":"PostgresError","message":"refused by Postgres","code":"P0001"/);
}, 180_000);

test('searched after all that', async () => {
  for (const text of [await told(), worker.output()]) {
    expect(text.length).toBeGreaterThan(10_000);
    for (const line of text.split('\n')) {
      const at = line.search(/words4711|jane doe|value4711|failed query|insert into|\$1/i);
      expect(at === -1 ? '' : line.slice(Math.max(0, at - 300), at + 300)).toBe('');
      // oxlint-disable-next-line no-control-regex
      expect(line).not.toMatch(/[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/);
    }
  }
});
