import { rotateKeyPair } from '../../db/endpoints/key-pairs';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import { generateWebhookSecret, rotateSecret } from '../../db/endpoints/secrets';
import { until } from '../../testbed/until';
import { orderDelivery } from '../support/histories';
import { advanceServiceClock, setServiceClock, storeStatus } from '../../testbed/notifications';
import { addPartner } from '../support/partner-events';
import { useService } from '../support/service';
import { testTemporal } from '../support/temporal';
import { judgePublicKeys, judgeSignatures, type Received } from '../support/webhook-receiver';

/** Secrets and key pairs that change while deliveries run, and events that are passed on. */
const temporal = testTemporal();
const service = useService({ worker: { DELIVERY_LADDER_SECONDS: '0,600,1' } }, temporal);
const { api, receiver, register } = service;

beforeEach(() => receiver.reset());
afterEach(() => setServiceClock(api.database, null));

/** The public keys that a receiver reads at this moment. */
async function listedKeys(key = api.keys.test): Promise<readonly string[]> {
  const { body } = await api.call({ method: 'GET', path: '/v1/webhook-keys', key });
  return (body.data.keys as { public_key: string }[]).map((one) => one.public_key);
}
/** Rotates the endpoint's secret and the partner's key pair. @returns the new secret */
async function rotate(endpointId: string, overlapSeconds: number): Promise<string> {
  const secret = generateWebhookSecret();
  const keyRing = parseKeyRing(service.keys);
  const owner = { partnerId: api.partnerId, environment: 'sandbox' } as const;
  await api.database.db.transaction(async (tx) => {
    await rotateSecret(tx, endpointId, { overlapSeconds, seal: (place) => keyRing.seal(secret, place) });
    await rotateKeyPair(tx, owner, { overlapSeconds, keyRing });
  });
  return secret;
}

/** Sends so many status notifications. @returns what arrived of them */
async function sent(count = 5): Promise<readonly Received[]> {
  const stored = await Promise.all(
    Array.from({ length: count }, () => storeStatus(api.database, { partnerId: api.partnerId })),
  );
  const ids = new Set(stored.map(({ eventId }) => eventId));
  const arrived = () => receiver.received.filter(({ eventId }) => ids.has(eventId));
  await until(() => arrived().length === count, 'their arrival');
  return arrived();
}

type Verdict = (request: Received) => string;
const withSecret = (secret: string) => (request: Received) => judgeSignatures(request, secret);
const withList = (list: readonly string[]) => (request: Received) => judgePublicKeys(request, list);
/** The different verdicts of each receiver on what arrived of a phase. */
const verdicts = (arrived: readonly Received[], receivers: Record<string, Verdict>) =>
  Object.fromEntries(
    Object.entries(receivers).map(([name, verdict]) => [name, [...new Set(arrived.map(verdict))].join()]),
  );

test('old and new secrets and lists of keys are accepted all of the overlap, then only the new', async () => {
  const { endpointId, secret } = await register();
  const before = await listedKeys();
  const first = await sent();
  // What is stored while they change goes out under the one set or the other.
  const [changing, next] = await Promise.all([sent(20), rotate(endpointId, 24 * 3_600)]);
  const during = await listedKeys();
  expect(during).toHaveLength(2);
  const overlap = await sent();
  await advanceServiceClock(api.database, 23.9 * 3_600);
  expect(await listedKeys()).toEqual(during);
  const late = await sent();
  await advanceServiceClock(api.database, 24.1 * 3_600);
  const after = await listedKeys();
  expect(after).toEqual(during.slice(0, 1));
  const last = await sent();

  const old = { oldSecret: withSecret(secret), oldList: withList(before) };
  const present = { newSecret: withSecret(next), newList: withList(after) };
  const both = { listOfTheOverlap: withList(during) };
  const accepted = (receivers: Record<string, Verdict>, verdict = 'accepts') =>
    Object.fromEntries(Object.keys(receivers).map((name) => [name, verdict]));
  for (const arrived of [first, changing, overlap, late])
    expect(verdicts(arrived, { ...old, ...both })).toEqual(accepted({ ...old, ...both }));
  for (const arrived of [overlap, late, last])
    expect(verdicts(arrived, { ...present, ...both })).toEqual(accepted({ ...present, ...both }));
  expect(verdicts(first, present)).toEqual(accepted(present, 'refuses'));
  expect(verdicts(last, old)).toEqual(accepted(old, 'refuses'));
});

test('in an emergency the old secret and key sign nothing that begins after the rotation, ladders in flight neither', async () => {
  const { endpointId, secret } = await register();
  const leaked = { secret: withSecret(secret), list: withList(await listedKeys()) };
  receiver.behave(() => 503);
  const climbing = await Promise.all(
    Array.from({ length: 6 }, () => storeStatus(api.database, { partnerId: api.partnerId })),
  );
  const tries = (nth: number) =>
    climbing.flatMap(({ eventId }) => receiver.received.filter((one) => one.eventId === eventId)[nth] ?? []);
  await until(() => tries(0).length === climbing.length, 'the first attempt of each');
  receiver.behave(() => 200);
  const alone = { secret: withSecret(await rotate(endpointId, 0)), list: withList(await listedKeys()) };
  const after = await sent();
  for (const { notificationId } of climbing)
    await orderDelivery({ database: api.database, client: temporal.client }, 'retry_now', notificationId);
  await until(() => tries(1).length === climbing.length, 'the next attempt of each', 30_000);

  for (const arrived of [after, tries(1)]) {
    expect(verdicts(arrived, alone)).toEqual({ secret: 'accepts', list: 'accepts' });
    expect(verdicts(arrived, leaked)).toEqual({ secret: 'refuses', list: 'refuses' });
  }
  expect(verdicts(tries(0), leaked)).toEqual({ secret: 'accepts', list: 'accepts' });
});

test("an event passed on to another partner, or to the other environment, fails with that one's keys", async () => {
  await register();
  const another = await addPartner(api.database, 'P100002');
  await register(another.partnerId);
  await register(api.partnerId, 'live');
  const lists = {
    own: withList(await listedKeys()),
    'the other environment': withList(await listedKeys(api.keys.live)),
    'another partner': withList(await listedKeys(another.test)),
  };
  const owners = {
    own: { partnerId: api.partnerId },
    'the other environment': { partnerId: api.partnerId, environment: 'live' },
    'another partner': { partnerId: another.partnerId },
  } as const;
  for (const [name, owner] of Object.entries(owners)) {
    const { eventId } = await storeStatus(api.database, owner);
    const arrived = () => receiver.received.filter((one) => one.eventId === eventId);
    await until(() => arrived().length > 0, 'the delivery');
    expect(verdicts(arrived(), lists)).toEqual(
      Object.fromEntries(Object.keys(lists).map((whose) => [whose, whose === name ? 'accepts' : 'refuses'])),
    );
  }
});
