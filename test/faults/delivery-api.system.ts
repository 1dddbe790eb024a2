import { useCrashScene } from '../support/crash-scene';
import { until } from '../../testbed/until';
import { testTemporal } from '../support/temporal';

const temporal = testTemporal();
const scene = useCrashScene(() => ({ temporal }));

test('the API killed before the commit: nothing is stored and no place used; a retry makes one', async () => {
  const [victim, next] = await Promise.all([scene.api(), scene.api()]);
  const release = await scene.lock('month');
  const answer = scene.post(victim);
  await until(() => scene.waits('pfqs api partners'), 'the insert waits for the lock');
  await victim.end('SIGKILL');
  await until(async () => !(await scene.waits('pfqs api partners')), 'Postgres has noticed the death');
  await release();
  expect(await answer).toBe('reset');
  expect(await scene.rows()).toEqual([]);
  expect(await scene.counts()).toEqual([{ delivered: 0, failed: 0, reserved: 0 }]);

  await (await scene.worker()).ready();
  expect(await scene.post(next)).toMatchObject({ status: 200, body: { data: { status: 'delivered' } } });
  await scene.expectDelivered(['delivered']);
}, 180_000);

test('the API killed after the commit: the sweep finds the row, delivered once', async () => {
  const victim = await scene.api();
  const answer = scene.post(victim);
  await until(async () => (await scene.rows()).length === 1, 'the row');
  await victim.end('SIGKILL');
  expect(await answer).toBe('reset');
  expect(await scene.rows()).toEqual([expect.objectContaining({ state: 'queued', attempts: [] })]);
  expect(await scene.counts()).toEqual([{ delivered: 0, failed: 0, reserved: 1 }]);

  // It comes after the NOTIFY, and hears of the row by looking only.
  await scene.worker();
  await scene.expectDelivered(['delivered']);
  expect(scene.receiver.received).toHaveLength(1);
}, 180_000);

test('the API killed before it answers: delivered all the same, and whoever asks again makes another', async () => {
  const [victim, next, worker] = await Promise.all([scene.api(), scene.api(), scene.worker()]);
  await worker.ready();
  let answerReceived = () => {};
  scene.receiver.behave((nth) =>
    nth > 0 ? 200 : (response) => void (answerReceived = () => response.writeHead(200).end()),
  );
  const answer = scene.post(victim);
  await until(() => scene.receiver.received.length === 1, 'the event arrives');
  await victim.end('SIGKILL');
  expect(await answer).toBe('reset');
  answerReceived();
  await scene.expectDelivered(['delivered']);

  expect(await scene.post(next)).toMatchObject({ status: 200 });
  const delivered = expect.objectContaining({ state: 'delivered', attempts: ['delivered'] });
  expect(await scene.rows()).toEqual([delivered, delivered]);
  expect(scene.receiver.received).toHaveLength(2);
  expect(await scene.counts()).toEqual([{ delivered: 2, failed: 0, reserved: 0 }]);
  await scene.expectInvariants({ kills: 0 });
}, 180_000);
