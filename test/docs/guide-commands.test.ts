import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openApplication, tell } from '../support/applications';
import { until } from '../../testbed/until';
import { fileNeeds } from '../support/needs';
import { useService } from '../support/service';
import { runDirectory } from '../../testbed/temporary-directory';

/**
 * Every command of the partner guide is pasted into a shell, in the order of the guide, against a real service. Only the dates
 * and the ids of its examples are replaced; address and key are in the environment, as the guide says.
 */
fileNeeds('curl');

const guide = readFileSync(join(__dirname, '../../docs/partner-guide.md'), 'utf8');
const service = useService({ worker: { DELIVERY_LADDER_SECONDS: '0,1' } });
const { api } = service;
const folder = runDirectory('guide');
/** What stands in the guide for what this service has. */
const replaced = new Map<string, string>();

/** A command, and the answer that the guide shows below it before the next one. */
interface Shown {
  readonly command: string;
  readonly answer: unknown;
}
const shown: Shown[] = [...guide.matchAll(/```sh\n(?!export)([\s\S]*?)```([\s\S]*?)(?=```sh\n|$)/g)].map(
  ([, command = '', after = '']) => {
    const [, json] = /^[^#]*?```json\n([\s\S]*?)```/.exec(after) ?? [];
    return { command, answer: json === undefined ? undefined : JSON.parse(json) };
  },
);
/** Variables that the guide takes from an answer in a file. */
const exported = [...guide.matchAll(/```sh\n(export \w+=\$\(.*)\n```/g)].map(([, line]) => line).join('\n');
const find = (part: string) => shown.find(({ command }) => command.includes(part)) as Shown;

beforeAll(async () => {
  writeFileSync(join(folder, 'ca.pem'), api.ca);
  await service.register();
  replaced.set('2026-11-17T18:00:00Z', new Date(Date.now() - 3_600_000).toISOString());
  replaced.set('2026-11-21T12:00:00Z', new Date(Date.now() + 3_600_000).toISOString());
});

// oxlint-disable-next-line typescript/no-explicit-any -- answers of every form
async function paste({ command }: Shown): Promise<{ status: number; body: any }> {
  const text = [...replaced].reduce((line, [from, to]) => line.replaceAll(from, to), command.trim());
  const script = `${exported}\n${text.replace(/^curl /, `curl -sS -w '\\n%{http_code}' `)}`;
  const own = { BASE_URL: `https://127.0.0.1:${api.port}`, API_KEY: api.keys.test };
  const { stdout } = await promisify(execFile)('bash', ['-c', script], {
    cwd: folder,
    env: { ...process.env, ...own, CURL_CA_BUNDLE: join(folder, 'ca.pem') },
  });
  const [, body = '', status] = /^([\s\S]*)\n(\d{3})$/.exec(stdout) ?? [];
  return { status: Number(status), body: JSON.parse(body) };
}

/** Names of fields all the way down; of a list those of its first entry. A value that may be null says nothing. */
function shapeOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.slice(0, 1).map(shapeOf);
  if (typeof value !== 'object' || value === null) return null;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, shapeOf(one)]));
}

test('the guide has the commands that are tried here, and no other', () => {
  const paths = shown.map(({ command }) => /\$BASE_URL\/v1\/([\w-]+(?:\/[a-z]+)?)/.exec(command)?.[1]);
  expect(paths.join(' ')).toBe(
    'finance-quote sandbox/credit sandbox/credit notifications webhook-keys notifications/test ' +
      'notifications notifications/ntf notifications/recover notifications/recover notifications/recoveries ' +
      'credit-applications/app notifications/ntf',
  );
  for (const { command } of shown) expect(command).toMatch(/^curl /);
});

test.each(['/v1/finance-quote', '/v1/webhook-keys', '/v1/notifications/test'])(
  '%s answers 200, as it is shown',
  async (path) => {
    if (path === '/v1/finance-quote') replaced.set('P100001', api.partnerId);
    const { answer } = find(path);
    const { status, body } = await paste(find(path));
    expect(status).toBe(200);
    if (answer !== undefined) expect(shapeOf(body)).toEqual(shapeOf(answer));
  },
);

test('an application is simulated, told, and moved on', async () => {
  const [open, move, list] = shown.slice(1) as [Shown, Shown, Shown];
  await paste(find('/v1/finance-quote'));
  const opened = await paste(open);
  expect(opened).toMatchObject({ status: 201, body: { data: { status: 'completed' } } });
  expect(await paste(move)).toMatchObject({ status: 200, body: { data: { status: 'refunded' } } });
  expect(await paste(list)).toMatchObject({ status: 200, body: { success: true } });
  const told = () =>
    service.receiver.received.map(({ body: text }) => JSON.parse(text).data.status as string);
  await until(() => told().includes('refunded'), 'all is delivered');
});

test('the catch-up finds what an outage has cost, has it sent again, and shows that it arrived', async () => {
  const { receiver } = service;
  type Seven = [Shown, Shown, Shown, Shown, Shown, Shown, Shown];
  const [list, one, dryRun, begin, follow, application, again] = shown.slice(6) as Seven;
  receiver.behave(() => 503);
  const opened = await openApplication(api.database, { partnerId: api.partnerId });
  await tell(api.database, opened.applicationId, 'submitted');
  const failed = async () => (await paste(list)).body.data.notifications as { notification_id: string }[];
  await until(async () => (await failed()).length === 2, 'both have failed');
  const listed = await paste(list);
  expect([listed.status, shapeOf(listed.body)]).toEqual([200, shapeOf(list.answer)]);
  const [last] = listed.body.data.notifications;
  expect(last).toMatchObject({ status: 'failed', reason: 'exhausted', sequence: 2 });

  replaced.set('ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B9', last.notification_id);
  const read = await paste(one);
  expect(read.status).toBe(200);
  expect(read.body.data.attempt_log).toMatchObject([{ http_status: 503 }, { http_status: 503 }]);
  expect(JSON.parse(read.body.data.payload).sequence).toBe(2);

  const counted = await paste(dryRun);
  expect(counted).toEqual({ status: 200, body: { success: true, data: { matched: 2 } } });
  expect(shapeOf(counted.body)).toEqual(shapeOf(dryRun.answer));

  receiver.behave(() => 200);
  receiver.received.length = 0;
  const begun = await paste(begin);
  expect([begun.status, shapeOf(begun.body)]).toEqual([202, shapeOf(begin.answer)]);
  replaced.set('rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA', begun.body.data.recovery_id);
  const progress = () => paste(follow);
  const finished = async () => (await progress()).body.data.status === 'finished';
  await until(finished, 'the recovery has ended');
  const ended = await progress();
  expect(shapeOf(ended.body)).toEqual(shapeOf(follow.answer));
  expect(ended.body.data).toMatchObject({ matched: 2, resent: 2, delivered: 2, failed: 0 });
  expect(receiver.received.map(({ body }) => JSON.parse(body).sequence)).toEqual([1, 2]);

  replaced.set('app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6', opened.applicationId);
  const state = await paste(application);
  expect(state.body.data).toMatchObject({ status: 'submitted', events: [{ sequence: 1 }, { sequence: 2 }] });

  expect((await paste(again)).status).toBe(202);
  await until(() => receiver.received.length === 3, 'it has arrived once more');
  expect(receiver.received[2]?.headers['webhook-id']).toBe(receiver.received[1]?.headers['webhook-id']);
}, 240_000);
