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

/** Stored, and not yet seen by the receiver. */
const MOST_UNDER_WAY = 16;

/** Status notifications, stored one after the other, as fast as they arrive. */
function startTraffic() {
  const phases = new Map<string, string>();
  let phase = 'before';
  let stopped = false;
  let fault: unknown;
  const missing = () => {
    const arrived = new Set(receiver.received.map(({ eventId }) => eventId));
    return [...phases.keys()].filter((id) => !arrived.has(id));
  };
  let storing: Promise<void> = Promise.resolve();
  const storeOne = async () => {
    const now = phase;
    phases.set((await storeStatus(api.database, { partnerId: api.partnerId })).eventId, now);
  };
  const running = (async () => {
    while (!stopped) {
      storing = storeOne();
      await storing;
      while (!stopped && missing().length >= MOST_UNDER_WAY)
        await new Promise((resolve) => setTimeout(resolve, 5));
    }
  })().catch((error: unknown) => (fault = error));
  const of = (wanted: string) => receiver.received.filter(({ eventId }) => phases.get(eventId) === wanted);
  return {
    /** Names what is stored from now on, and waits until all that was stored before has arrived. */
    async enter(next: string) {
      phase = next;
      await storing;
      const earlier = () => missing().filter((id) => phases.get(id) !== next);
      await until(() => earlier().length === 0, `all from before ${next}`, 60_000);
    },
    /** What arrived of a phase. A delivery counts for the phase it was stored in. */
    of,
    /** Names what is stored from now on, and waits until so much of it has arrived. */
    async during(next: string, arrivals: number) {
      phase = next;
      await until(() => of(next).length >= arrivals, `${arrivals} deliveries of ${next}`, 60_000);
    },
    /** Stores nothing more, and waits until all has arrived. @returns how much was stored */
    async stop() {
      stopped = true;
      await running;
      if (fault !== undefined) throw fault;
      await until(() => missing().length === 0, 'the last deliveries', 60_000);
      return phases.size;
    },
  };
}

type Verdict = (request: Received) => string;
const withSecret = (secret: string) => (request: Received) => judgeSignatures(request, secret);
const withList = (list: readonly string[]) => (request: Received) => judgePublicKeys(request, list);
/** The different verdicts of each receiver on what arrived of a phase. */
const verdicts = (arrived: readonly Received[], receivers: Record<string, Verdict>) =>
  Object.fromEntries(
    Object.entries(receivers).map(([name, verdict]) => [name, [...new Set(arrived.map(verdict))].join()]),
  );

test('while traffic flows, old and new secrets and lists of keys are accepted all of the overlap, then only the new', async () => {
  const { endpointId, secret } = await register();
  const before = await listedKeys();
  const traffic = startTraffic();
  await traffic.during('before', 20);
  await traffic.enter('rotating');
  const next = await rotate(endpointId, 24 * 3_600);
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

  const old = { oldSecret: withSecret(secret), oldList: withList(before) };
  const present = { newSecret: withSecret(next), newList: withList(after) };
  const both = { listOfTheOverlap: withList(during) };
  const oldAccept = { oldSecret: 'accepts', oldList: 'accepts', listOfTheOverlap: 'accepts' };
  const newAccept = { newSecret: 'accepts', newList: 'accepts', listOfTheOverlap: 'accepts' };
  // What was stored while they changed went out under the one set or the other.
  for (const phase of ['before', 'rotating', 'overlap', 'late in the overlap'])
    expect([phase, verdicts(traffic.of(phase), { ...old, ...both })]).toEqual([phase, oldAccept]);
  for (const phase of ['overlap', 'late in the overlap', 'ending', 'after'])
    expect([phase, verdicts(traffic.of(phase), { ...present, ...both })]).toEqual([phase, newAccept]);
  expect(verdicts(traffic.of('before'), present)).toEqual({ newSecret: 'refuses', newList: 'refuses' });
  expect(verdicts(traffic.of('after'), old)).toEqual({ oldSecret: 'refuses', oldList: 'refuses' });
}, 120_000);

test('in an emergency the old secret and key sign nothing that begins after the rotation, ladders in flight neither', async () => {
  const { endpointId, secret } = await register();
  const leaked = { secret: withSecret(secret), list: withList(await listedKeys()) };
  const SEQUENCE = 7;
  receiver.behave((_nth, { body }) => (JSON.parse(body).sequence === SEQUENCE ? 503 : 200));
  const climbing = await Promise.all(
    Array.from({ length: 12 }, () =>
      storeStatus(api.database, { partnerId: api.partnerId, sequence: SEQUENCE }),
    ),
  );
  const tries = (id: string) => receiver.received.filter(({ eventId }) => eventId === id);
  const tried = (times: number) => () => climbing.every(({ eventId }) => tries(eventId).length >= times);
  const traffic = startTraffic();
  await until(tried(1), 'the first attempt of each');
  await traffic.during('before', 10);
  await traffic.enter('rotating');
  const alone = { secret: withSecret(await rotate(endpointId, 0)), list: withList(await listedKeys()) };
  receiver.behave(() => 200);
  await traffic.during('after', 20);
  await traffic.stop();
  for (const { notificationId } of climbing)
    await orderDelivery({ database: api.database, client: temporal.client }, 'retry_now', notificationId);
  await until(tried(2), 'the next attempt of each', 30_000);

  const accepted = { secret: 'accepts', list: 'accepts' };
  const refused = { secret: 'refuses', list: 'refuses' };
  const first = climbing.flatMap(({ eventId }) => tries(eventId).slice(0, 1));
  const later = climbing.flatMap(({ eventId }) => tries(eventId).slice(1));
  for (const arrived of [traffic.of('after'), later]) {
    expect(verdicts(arrived, alone)).toEqual(accepted);
    expect(verdicts(arrived, leaked)).toEqual(refused);
  }
  for (const arrived of [traffic.of('before'), first]) expect(verdicts(arrived, leaked)).toEqual(accepted);
  for (const request of traffic.of('rotating'))
    expect([leaked, alone].filter(({ secret }) => secret(request) === 'accepts')).toHaveLength(1);
}, 120_000);

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
}, 60_000);
