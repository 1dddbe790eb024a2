import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readConfig } from '../../runtime/config/config';
import { opsOptions } from '../../ops/options';
import { newKeyRingText } from '../../testbed/notifications';
import { runDirectory } from '../../testbed/temporary-directory';

const STACK = {
  databaseUrl: 'postgres://embedded/quotes',
  temporalAddress: '127.0.0.1:17233',
  receiverUrl: 'https://localhost:18445',
};
const OWN = { DATABASE_URL: 'postgres://own/quotes' };
const embedded = newKeyRingText().replace('test:', 'embedded:');

/** @param stack what stack.json holds; null: there is no embedded stack. */
async function optionsFor(stack: object | null, environment: Record<string, string> = {}) {
  const DATA_DIR = runDirectory('ops');
  if (stack !== null) {
    await writeFile(join(DATA_DIR, 'stack.json'), JSON.stringify(stack));
    await writeFile(join(DATA_DIR, 'webhook-keys'), `${embedded}\n`, { mode: 0o600 });
  }
  return opsOptions(() => readConfig({ DATA_DIR, ...environment }));
}

test('without settings everything is that of the embedded stack', async () => {
  const options = await optionsFor(STACK);
  expect([options.databaseUrl(), options.embedded()]).toEqual([STACK.databaseUrl, true]);
  expect(options.keyRing().currentKeyId).toBe('embedded');
  expect(options.temporal()).toMatchObject({
    namespace: 'default',
    connection: { address: STACK.temporalAddress },
  });
  expect(await options.checkTarget('https://localhost:18445/webhooks')).toMatchObject({ ok: true });
  expect(await options.checkTarget('https://localhost:18446/webhooks')).toMatchObject({
    reason: 'port',
    message: expect.stringContaining('"A receiver of your own"'),
  });
});

test('settings come before it', async () => {
  const environment = { ...OWN, WEBHOOK_KEYS: newKeyRingText(), TEMPORAL_ADDRESS: 'temporal.example:7233' };
  const options = await optionsFor(STACK, environment);
  expect(options.databaseUrl()).toBe(OWN.DATABASE_URL);
  expect(options.keyRing().currentKeyId).toBe('test');
  expect(options.temporal().connection.address).toBe('temporal.example:7233');
});

test('the actor of a change is OPS_ACTOR, else the login name, and in production never a shared account', async () => {
  const actorOf = async (login: string, more: Record<string, string> = {}) =>
    (await optionsFor(null, { ...OWN, ...more })).actor(login);
  expect(await actorOf('jane')).toBe('jane');
  expect(await actorOf('root', { OPS_ACTOR: 'Jane Doe' })).toBe('Jane Doe');
  for (const shared of ['node', 'root', 'ROOT', 'ubuntu', 'postgres', 'uid 1000', '1000'])
    await expect(actorOf(shared)).rejects.toThrow(`"${shared}" is an account that may be anybody's`);
  await expect(actorOf('jane', { OPS_ACTOR: 'Node' })).rejects.toThrow('set OPS_ACTOR to your own name');
  const message = 'OPS_ACTOR: must be 1 to 120 visible characters';
  for (const OPS_ACTOR of ['a\nb', 'jane  doe', 'x'.repeat(121), '\u202Eenaj'])
    await expect(actorOf('jane', { OPS_ACTOR })).rejects.toThrow(message);
  expect(await actorOf('root', { ENVIRONMENT: 'development' })).toBe('root');
  expect((await optionsFor(STACK)).actor('root')).toBe('root');
});

test('a database of its own has nothing of the embedded stack', async () => {
  const options = await optionsFor(STACK, OWN);
  expect(options.embedded()).toBe(false);
  expect(() => options.keyRing()).toThrow('with DATABASE_URL set, WEBHOOK_KEYS must be');
  expect(options.temporal().connection.address).toBe('127.0.0.1:7233');
  expect(await options.checkTarget('https://localhost:18445/webhooks')).toMatchObject({ ok: false });
});

test('what is nowhere is named with the setting and the file, and only when it is asked for', async () => {
  const options = await optionsFor(null);
  expect(() => options.databaseUrl()).toThrow(/set DATABASE_URL, or start .*stack\.json/);
  expect(() => options.keyRing()).toThrow(/set WEBHOOK_KEYS, or start .*webhook-keys/);
});
