import { useCrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { deliveryOf } from '../support/histories';
import { PATHS } from '../support/fast-path';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy';
import { testTemporal } from '../support/temporal';

const temporal = testTemporal();
/** Stands before the receiver. */
let door: TcpProxy;
const scene = useCrashScene(() => ({
  temporal,
  receiverPort: async ({ port }) => {
    door = await startTcpProxy({ port });
    return door.port;
  },
}));
afterAll(() => door?.close());

/** Tries of the activities on a queue that have ended: a regular attempt is tried again, one at once leaves none. */
async function triesOf(notificationId: string): Promise<number[]> {
  const { events } = await deliveryOf(temporal.client, notificationId).fetchHistory();
  return (events ?? []).flatMap(({ activityTaskStartedEventAttributes: started }) => started?.attempt ?? []);
}
const eventsSeen = () => scene.receiver.received.map(({ eventId }) => eventId);

describe.each(PATHS)('on the %s path', (path) => {
  test('killed before the send: the attempt is closed as unknown, the next one sends the event', async () => {
    const victim = await scene.worker({}, path);
    // A connection kept from before would be used as it is.
    door.cut();
    // Connections open, and the handshake never ends.
    door.freeze();
    const { eventId, notificationId } = await scene.storeTest();
    await until(async () => (await scene.rows())[0]?.attempts.length === 1, 'the row of an attempt');
    await victim.end('SIGKILL');
    expect((await scene.rows())[0]).toMatchObject({ state: 'started', attempts: ['under way'] });
    door.cut();
    door.unfreeze();

    await scene.worker();
    await scene.expectDelivered(['unknown', 'delivered'], { kills: 1 });
    expect(await triesOf(notificationId)).toEqual([path === 'regular' ? 2 : 1]);
    expect(eventsSeen()).toEqual([eventId]);
  }, 180_000);

  test('killed between the partner and the record: the same event again, counted once', async () => {
    const victim = await scene.worker({}, path);
    scene.receiver.behave((nth) => (nth > 0 ? 200 : () => void victim.child.kill('SIGKILL')));
    const { eventId, notificationId } = await scene.storeTest();
    expect(await victim.ended).toBe('SIGKILL');

    await scene.worker();
    await scene.expectDelivered(['unknown', 'delivered'], { kills: 1 });
    expect(await triesOf(notificationId)).toEqual([path === 'regular' ? 2 : 1]);
    expect(eventsSeen()).toEqual([eventId, eventId]);
  }, 180_000);

  test('killed between the count and word of it: what runs again changes nothing', async () => {
    const way = await startTcpProxy({ port: Number(temporal.address.split(':')[1]) });
    const victim = await scene.worker({ TEMPORAL_ADDRESS: `127.0.0.1:${way.port}` }, path);
    let release = async () => {};
    scene.receiver.behave(() => (response) => {
      void (async () => {
        await until(
          async () =>
            (await scene.database.sql`select 1 from notifications_now where started_at is not null`).length >
            0,
          'the dispatcher has noted the start',
        );
        release = await scene.lock('notification');
        response.writeHead(200).end();
      })();
    });
    const { notificationId } = await scene.storeTest();
    await until(() => scene.waits('pfqs worker'), 'the record waits for the lock');
    way.freeze();
    await release();
    const [counted] = await scene.ended();
    await victim.end('SIGKILL');
    way.cut();
    const handle = deliveryOf(temporal.client, notificationId);
    expect((await handle.describe()).status.name).toBe('RUNNING');

    await scene.worker();
    // What runs again finds that there is nothing left to do.
    expect(await handle.result()).toEqual({ status: 'delivered', attempts: 0 });
    expect(await triesOf(notificationId)).toEqual([path === 'regular' ? 2 : 1]);
    await scene.expectDelivered(['delivered'], { kills: 1 });
    expect(await scene.rows()).toEqual([counted]);
    expect(scene.receiver.received).toHaveLength(1);
    await way.close();
  }, 180_000);
});
