import { rotateKeyPair } from '../../db/endpoints/key-pairs';
import { parseKeyRing } from '../../db/endpoints/key-ring';
import type { TestApi } from '../support/api';
import { until } from '../support/delivery';
import { addEndpoint, advanceServiceClock, setServiceClock, storeStatus } from '../support/notifications';
import { addPartner } from '../support/partner-events';
import { startTestService, type TestService } from '../support/service';
import { testTemporal } from '../support/temporal';
import { startTraffic } from '../support/traffic';
import {
  judgePublicKeys,
  verifySignatures,
  type Received,
  type WebhookReceiver,
} from '../support/webhook-receiver';

/** Key pairs that change while deliveries run, and events that are passed on. */
const temporal = testTemporal();
let service: TestService;
let api: TestApi;
let receiver: WebhookReceiver;
let secret: string;

beforeAll(async () => {
  service = await startTestService(temporal);
  ({ api, receiver } = service);
  ({ secret } = await register(api.partnerId));
}, 300_000);
afterAll(() => service?.close());
beforeEach(() => void (receiver.received.length = 0));
afterEach(() => setServiceClock(api.database, null));

const register = (partnerId: string, environment: 'sandbox' | 'live' = 'sandbox') =>
  addEndpoint(api.database, { partnerId, environment, url: receiver.url, keyRing: service.keys });
/** What a receiver keeps that has read the list at this moment. */
async function listedKeys(key = api.keys.test): Promise<readonly string[]> {
  const { body } = await api.call({ method: 'GET', path: '/v1/webhook-keys', key });
  return (body.data.keys as { public_key: string }[]).map((one) => one.public_key);
}
const rotate = (overlapSeconds: number) =>
  api.database.db.transaction((tx) =>
    rotateKeyPair(
      tx,
      { partnerId: api.partnerId, environment: 'sandbox' },
      { overlapSeconds, keyRing: parseKeyRing(service.keys) },
    ),
  );
type Arrived = readonly { readonly request: Received }[];
/** Those that a receiver with this list does not treat so. */
const otherwise = (arrived: Arrived, list: readonly string[], verdict: 'accepts' | 'refuses') =>
  arrived.filter(({ request }) => judgePublicKeys(request, list) !== verdict);

test('while traffic flows, whoever read the list before, during or after a rotation verifies every request of the overlap', async () => {
  const before = await listedKeys();
  const traffic = startTraffic(api.database, receiver, [api.partnerId]);
  await traffic.during('before', 20);
  await traffic.enter('rotating');
  await rotate(24 * 3_600);
  const during = await listedKeys();
  expect(during).toHaveLength(2);
  await traffic.during('overlap', 30);
  await advanceServiceClock(api.database, 23.9 * 3_600);
  expect(await listedKeys()).toEqual(during);
  await traffic.during('late in the overlap', 20);
  await traffic.enter('ending');
  await advanceServiceClock(api.database, 24.1 * 3_600);
  const after = await listedKeys();
  expect(after).toEqual(during.slice(0, 1));
  await traffic.during('after', 20);
  expect(receiver.received).toHaveLength(await traffic.stop());

  // What was stored while the keys changed went out under the one set or the other.
  for (const phase of ['before', 'rotating', 'overlap', 'late in the overlap'])
    for (const list of [before, during])
      expect([phase, otherwise(traffic.of(phase), list, 'accepts')]).toEqual([phase, []]);
  for (const phase of ['overlap', 'late in the overlap', 'ending', 'after'])
    for (const list of [during, after])
      expect([phase, otherwise(traffic.of(phase), list, 'accepts')]).toEqual([phase, []]);
  expect(otherwise(traffic.of('before'), after, 'refuses')).toEqual([]);
  expect(otherwise(traffic.of('after'), before, 'refuses')).toEqual([]);
  // Receivers with the secret notice nothing of it.
  for (const request of receiver.received) verifySignatures(request, secret);
}, 120_000);

test('a key that leaked signs nothing that begins after the rotation', async () => {
  const leaked = await listedKeys();
  const traffic = startTraffic(api.database, receiver, [api.partnerId]);
  await traffic.during('before', 10);
  await traffic.enter('rotating');
  await rotate(0);
  const alone = await listedKeys();
  await traffic.during('after', 20);
  await traffic.stop();
  expect(otherwise(traffic.of('after'), alone, 'accepts')).toEqual([]);
  expect(otherwise(traffic.of('after'), leaked, 'refuses')).toEqual([]);
  for (const phase of ['before', 'rotating'])
    expect(otherwise(traffic.of(phase), [...leaked, ...alone], 'accepts')).toEqual([]);
}, 120_000);

test("an event passed on to another partner, or to the other environment, fails with that one's keys", async () => {
  const another = await addPartner(api.database, 'P100002');
  await register(another.partnerId);
  await register(api.partnerId, 'live');
  const lists = {
    own: await listedKeys(),
    'the other environment': await listedKeys(api.keys.live),
    'another partner': await listedKeys(another.test),
  };
  const owners = {
    own: { partnerId: api.partnerId },
    'the other environment': { partnerId: api.partnerId, environment: 'live' },
    'another partner': { partnerId: another.partnerId },
  } as const;
  for (const [name, owner] of Object.entries(owners)) {
    const { eventId } = await storeStatus(api.database, owner);
    const find = () => receiver.received.find(({ headers }) => headers['webhook-id'] === eventId);
    await until(() => find() !== undefined, 'the delivery');
    const request = find() as Received;
    const verdicts = Object.entries(lists).map(([whose, list]) => [whose, judgePublicKeys(request, list)]);
    expect(verdicts).toEqual(
      Object.keys(lists).map((whose) => [whose, whose === name ? 'accepts' : 'refuses']),
    );
  }
}, 60_000);
