import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { newKeyRingText, newPartner } from '../../testbed/notifications';
import { asRole } from '../../testbed/roles';
import { startDeafServer } from '../outbound/partner';
import { useOps } from './run';

const execute = promisify(execFile);
const root = join(__dirname, '../..');
const ops = useOps();
const call = (args: string) => ['--import', 'tsx', 'bin/ops.ts', ...args.split(' ')];
const where = ({ url = ops.database.url, ...more }: Record<string, string> = {}) => ({
  cwd: root,
  env: { ...process.env, DATABASE_URL: asRole(url, 'ops'), OPS_ACTOR: 'jane.doe', ...more },
});
const start = (args: string, environment?: Record<string, string>) =>
  execute(process.execPath, call(args), where(environment));

test('as a process it changes the database, prints JSON alone, seals with WEBHOOK_KEYS and signs with OPS_ACTOR', async () => {
  const keys = newKeyRingText();
  const { partnerId } = await newPartner(ops.database, keys);
  const rotate = `webhooks secrets rotate --partner ${partnerId} --environment sandbox --json`;
  const { stdout, stderr } = await start(rotate, { WEBHOOK_KEYS: keys });
  expect(stderr).toBe('');
  const { endpoint_id: endpointId, secret_id } = JSON.parse(stdout);
  const [change] = await ops.json('changes list --subject', endpointId);
  expect(change).toMatchObject({ actor: 'jane.doe', details: { secret_id } });
});

test('it ends soon after its answer where Temporal takes no connection', async () => {
  const deaf = await startDeafServer();
  const run = start('status --json', { TEMPORAL_ADDRESS: `127.0.0.1:${deaf.port}` }).finally(() =>
    deaf.close(),
  );
  await expect(run).rejects.toMatchObject({ code: 1, stdout: expect.stringContaining('"unreachable"') });
}, 60_000);

test('it names the Postgres that takes a connection and does not answer', async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const address = `127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const run = start('partners list', { url: `postgres://u@${address}/d` }).finally(() => silent.close());
  await expect(run).rejects.toMatchObject({
    code: 3,
    stderr: `error: The database cannot be reached: no answer from ${address}\n`,
  });
}, 60_000);

test('the actor is checked before an order reaches Temporal; a dry run needs none', async () => {
  const anybody = { OPS_ACTOR: 'node', TEMPORAL_ADDRESS: '127.0.0.1:1' };
  await expect(start('deployments set-current x', anybody)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("may be anybody's"),
  });
  const { stdout } = await start('retention run', anybody);
  expect(stdout).toContain('Nothing was removed');
});

test('where its answer cannot be written it says so, and that its change stands', async () => {
  const full = openSync('/dev/full', 'w');
  const stdio = ['ignore', full, 'pipe'] as const;
  const creating = spawn(process.execPath, call('partners create --name Full'), {
    ...where(),
    stdio: [...stdio],
  });
  const [code, said] = await Promise.all([once(creating, 'exit'), text(creating.stderr as Readable)]);
  expect(code).toEqual([1, null]);
  expect(said).toMatch(/^error: the answer cannot be written \(ENOSPC[^\n]*stays so\n$/);
});

test('whoever closes the pipe of --watch ends it, and a closed pipe of errors leaves the exit code as it is', async () => {
  const watching = spawn(
    process.execPath,
    call('status --watch 1'),
    where({ TEMPORAL_ADDRESS: '127.0.0.1:1' }),
  );
  await once(watching.stdout, 'data');
  watching.stdout.destroy();
  const [code, signal] = await once(watching, 'exit', { signal: AbortSignal.timeout(30_000) }).finally(() =>
    watching.kill(),
  );
  // Without a worker it is not well.
  expect([code, signal]).toEqual([1, null]);

  const mistyped = spawn(process.execPath, call('no-such-command'), where());
  mistyped.stderr.destroy();
  expect(await once(mistyped, 'exit')).toEqual([2, null]);
});
