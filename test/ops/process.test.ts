import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { newKeyRingText, newPartner } from '../../testbed/notifications';
import { asRole } from '../../testbed/roles';
import { useOps } from './run';

const execute = promisify(execFile);
const root = join(__dirname, '../..');
const ops = useOps();
const start = (args: string, { url = ops.database.url, ...more }: Record<string, string> = {}) =>
  execute(process.execPath, ['--import', 'tsx', 'bin/ops.ts', ...args.split(' ')], {
    cwd: root,
    env: { ...process.env, DATABASE_URL: asRole(url, 'ops'), OPS_ACTOR: 'jane.doe', ...more },
  });

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

test('the actor is checked before an order reaches Temporal; a dry run needs none', async () => {
  const anybody = { OPS_ACTOR: 'node', TEMPORAL_ADDRESS: '127.0.0.1:1' };
  await expect(start('deployments set-current x', anybody)).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining("may be anybody's"),
  });
  const { stdout } = await start('retention run', anybody);
  expect(stdout).toContain('Nothing was removed');
});
