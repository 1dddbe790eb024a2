import { writeFile } from 'node:fs/promises';
import { Agent, request } from 'undici';
import { startApiProcess } from '../support/api-process';
import { useDatabase } from '../support/database';
import { until } from '../../testbed/until';
import { newKeyRingText } from '../../testbed/notifications';
import { createTestTls } from '../../testbed/tls';
import { startWebhookReceiver } from '../support/webhook-receiver';
import { startWorkerProcess } from '../support/worker-process';

const database = useDatabase();

test('SIGHUP lets an API process read its certificate again, and no request fails', async () => {
  const api = await startApiProcess({ databaseUrl: database.url });
  const url = `https://127.0.0.1:${api.port}/openapi.json`;
  const ask = async (dispatcher: Agent) => {
    const { statusCode, body } = await request(url, { dispatcher });
    // Not `dump`, which closes the connection after 128 kB.
    await body.text();
    return statusCode;
  };
  const trusting = (ca: string, keepAlive = true) =>
    new Agent({ connect: { ca }, ...(!keepAlive && { pipelining: 0 }) });
  const open = trusting(api.ca);
  try {
    expect(await ask(open)).toBe(200);
    // A pair that does not fit: the one before stays.
    const next = await createTestTls();
    await writeFile(api.tlsFiles.cert, next.cert);
    api.child.kill('SIGHUP');
    await until(() => api.output().includes('SIGHUP: the certificate cannot be used'), 'it says so');
    expect(await ask(trusting(api.ca, false))).toBe(200);

    let stop = false;
    const other: unknown[] = [];
    const asking = (async () => {
      while (!stop) {
        const status = await ask(open).catch(String);
        if (status !== 200) other.push(status);
        // 300 a minute are allowed to an address without a key.
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    await writeFile(api.tlsFiles.key, next.key);
    for (let nth = 0; nth < 20; nth += 1) {
      api.child.kill('SIGHUP');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await until(() => api.output().includes('SIGHUP: the certificate was read again'), 'it says so');
    expect(await ask(trusting(next.ca, false))).toBe(200);
    await expect(ask(trusting(api.ca, false))).rejects.toThrow(/certificate/);
    stop = true;
    await asking;
    expect(other).toEqual([]);
    expect(await api.end('SIGTERM')).toBe(0);
  } finally {
    await api.close();
  }
}, 90_000);

test('SIGHUP does nothing to a worker', async () => {
  const receiver = await startWebhookReceiver();
  const worker = await startWorkerProcess({
    databaseUrl: database.url,
    temporal: { address: '127.0.0.1:1', namespace: 'default' },
    taskQueue: 'hang-up',
    receiver,
    keys: newKeyRingText(),
  });
  try {
    await until(async () => (await worker.readiness()).status === 503, 'it listens', 60_000);
    worker.child.kill('SIGHUP');
    await until(() => worker.output().includes('SIGHUP: nothing to do'), 'it has heard it');
    expect(await worker.metrics()).toContain('pfqs_delivery_slots');
    expect(await worker.end('SIGTERM')).toBe(0);
  } finally {
    await worker.close();
    await receiver.close();
  }
}, 120_000);
