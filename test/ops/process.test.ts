import { execFile } from 'node:child_process';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { addEndpoint, newKeyRingText, storeTest } from '../support/notifications';
import { asRole } from '../support/roles';
import { createOpsUnderTest, type OpsUnderTest } from './run';

const execute = promisify(execFile);
const root = join(__dirname, '../..');
let ops: OpsUnderTest;

beforeAll(async () => {
  ops = await createOpsUnderTest();
});

afterAll(() => ops.close());

const start = (args: string[], databaseUrl: string, more: Record<string, string> = {}) =>
  execute(process.execPath, ['--import', 'tsx', 'bin/ops.ts', ...args], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: asRole(databaseUrl, 'ops'), OPS_ACTOR: 'jane.doe', ...more },
  });

test('as a process it changes the database, prints JSON alone, and signs with OPS_ACTOR', async () => {
  const { stdout, stderr } = await start(['partners', 'create', '--name', 'Process', '--json'], ops.url);
  expect(stderr).toBe('');
  expect(JSON.parse(stdout)).toMatchObject({ partner_id: 'P100001', name: 'Process' });
  const [change] = await ops.json('changes', 'list', '--subject', 'P100001');
  expect(change).toMatchObject({ action: 'partners.create', actor: 'jane.doe' });
});

const NOBODYS = ['node', 'Root', 'uid 1000'].map((OPS_ACTOR) => [OPS_ACTOR, { OPS_ACTOR }] as const);
/** The one that tests run as, which is root in a container. */
const { username } = userInfo();
const refusals = username === 'root' ? [...NOBODYS, ['the login name', { OPS_ACTOR: '' }] as const] : NOBODYS;

it.each(refusals)(
  'in production nothing is changed by %s, which may be anybody',
  async (_who, environment) => {
    const create = ['partners', 'create', '--name', 'Nobody', '--json'];
    await expect(start(create, ops.url, environment)).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/is an account that may be anybody's[^"]*set OPS_ACTOR to your own name/),
    });
    const { stdout } = await start(['partners', 'list', '--json'], ops.url, environment);
    expect(stdout).not.toContain('Nobody');
  },
);

test('before anything else is changed: no order reaches Temporal, and a dry run needs nobody', async () => {
  const anybody = { OPS_ACTOR: 'node', TEMPORAL_ADDRESS: '127.0.0.1:1' };
  await expect(start(['deployments', 'set-current', 'x'], ops.url, anybody)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("may be anybody's"),
  });
  const { stdout } = await start(['retention', 'run'], ops.url, anybody);
  expect(stdout).toContain('Nothing was removed');
});

it.each(['a\nb', 'a\u001B[31m', ' jane', 'x'.repeat(121), '\u202Eenaj'])(
  'a name that is not visible text is refused: %j',
  async (OPS_ACTOR) => {
    await expect(start(['partners', 'list'], ops.url, { OPS_ACTOR })).rejects.toMatchObject({
      code: 3,
      stderr: expect.stringContaining('OPS_ACTOR: must be 1 to 120 visible characters'),
    });
  },
);

test('as a process it ends with 3 when the database cannot be reached, without a stack trace', async () => {
  const failed = start(['keys', 'list'], 'postgres://postgres@127.0.0.1:1/x');
  await expect(failed).rejects.toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringMatching(/^error: The database cannot be reached: [^\n]*\n$/),
  });
});

test('as a process it ends with 3 when the database has no TLS that is asked for', async () => {
  const failed = start(['keys', 'list'], `${ops.url}?sslmode=require`);
  await expect(failed).rejects.toMatchObject({
    code: 3,
    stdout: '',
    stderr: 'error: The database cannot be reached: Postgres has no TLS\n',
  });
});

test('as a process it seals with WEBHOOK_KEYS, and ends with 3 within seconds when Temporal is not there', async () => {
  const keys = newKeyRingText();
  await addEndpoint(ops.database, { partnerId: 'P100001', url: 'https://hook.example/x', keyRing: keys });
  const { notificationId } = await storeTest(ops.database, { partnerId: 'P100001' });
  await ops.database.sql`update deliveries set state = 'started' where notification_id = ${notificationId}`;

  const rotate = [
    'webhooks',
    'secrets',
    'rotate',
    '--partner',
    'P100001',
    '--environment',
    'sandbox',
    '--json',
  ];
  const { stdout, stderr } = await start(rotate, ops.url, { WEBHOOK_KEYS: keys });
  expect([JSON.parse(stdout).live, stderr]).toEqual([expect.arrayContaining([expect.anything()]), '']);

  const away = start(['notifications', 'pause', notificationId], ops.url, {
    TEMPORAL_ADDRESS: '127.0.0.1:1',
  });
  await expect(away).rejects.toMatchObject({
    code: 3,
    stdout: '',
    stderr: expect.stringMatching(
      /^error: Temporal cannot be reached at 127\.0\.0\.1:1 \([^\n]+\): check TEMPORAL_ADDRESS\.\n$/,
    ),
  });
});
