import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { useApi } from '../support/api';
import { goodQuote } from '../../testbed/values';
import { startApiProcess, type ApiProcess } from '../support/api-process';
import { removeDirectory, temporaryDirectory } from '../../testbed/temporary-directory';
import { createTestTls } from '../../testbed/tls';
import { until } from '../../testbed/until';

/** Issues the keys and looks into the database. */
const admin = useApi();
/** Loaded ahead of the API: on SIGUSR2 it makes a fault that nobody waits for. */
const SABOTEUR = `process.on('SIGUSR2', () => void Promise.reject(new Error('nobody waits for this')));`;
const SABOTAGED = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(SABOTEUR)}` };

let api: ApiProcess;
async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
  api = await startApiProcess({ databaseUrl: admin.databaseUrl, environment });
}
afterEach(() => api.close());

/** Calls one after another. @param change what the nth call has otherwise than a good quote */
async function quotes(count: number, change: (nth: number) => object = () => ({})) {
  const answers: { status: number; id: string | undefined; tookMs: number }[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    const before = performance.now();
    const { status, body } = await api.call({ key: admin.keys.test, body: goodQuote, ...change(nth) });
    answers.push({ status, id: body.data?.service_quote_id, tookMs: performance.now() - before });
  }
  return answers;
}

test('a rejection that nobody handles: logged, and the process leaves with 1; rows stay', async () => {
  await start(SABOTAGED);
  const answered = await quotes(5);
  expect(await api.end('SIGUSR2')).toBe(1);
  const fatal = api
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":60'))
    .map((line) => JSON.parse(line) as { origin: string; err: { message: string; stack: string } });
  expect(fatal).toMatchObject([
    {
      origin: 'unhandledRejection',
      msg: 'uncaught error',
      err: { message: 'nobody waits for this', stack: expect.stringContaining('data:text/javascript') },
    },
  ]);
  const ids = answered.map(({ id }) => id ?? '');
  const rows = await admin.database.sql`select 1 from quotes where quote_id = any(${ids})`;
  expect(rows.count).toBe(5);
});

test('SIGTERM under load: what was accepted is answered, then it leaves with 0', async () => {
  await start();
  const outcomes: (number | string)[] = [];
  const stored = async () => (await admin.database.sql`select 1 from quotes`).count;
  const before = await stored();
  const load = Array.from({ length: 16 }, async () => {
    while (outcomes.at(-1) !== 'ECONNREFUSED')
      await quotes(1).then(
        ([answer]) => outcomes.push(answer?.status ?? 'none'),
        (error: { code?: string }) => outcomes.push(String(error.code)),
      );
  });
  await until(() => outcomes.length > 50, 'it is under load');
  expect(await api.end('SIGTERM')).toBe(0);
  await Promise.all(load);
  expect(await stored()).toBe(before + outcomes.filter((outcome) => outcome === 200).length);
  // What comes after the end is refused; nothing else fails. A client that had no CPU for a whole second (DRAIN_MS) may meet its
  // closed connection.
  const others = outcomes.filter((outcome) => outcome !== 200 && outcome !== 'ECONNREFUSED');
  expect(['', 'UND_ERR_SOCKET', 'UND_ERR_SOCKET,UND_ERR_SOCKET']).toContain(others.join());
});

describe('a log that nobody reads', () => {
  /** A refusal whose line in the log has about 350 bytes. */
  const refused = (caller: number) => (nth: number) => ({
    body: { ...goodQuote, merchant_id: 'M1' },
    headers: { 'x-request-id': `crowd-${caller}-${nth}-`.padEnd(128, 'x') },
  });

  test.each<NodeJS.Signals>(['SIGTERM', 'SIGUSR2'])(
    'stalls no request, and no end of the process after %s',
    async (signal) => {
      await start(SABOTAGED);
      // Its pipe fills up.
      api.child.stdout?.pause();
      // About 2 MiB of lines: more than the pipe and the backlog hold together.
      const crowd = await Promise.all(Array.from({ length: 8 }, (_none, at) => quotes(700, refused(at))));
      expect(new Set(crowd.flat().map(({ status }) => status))).toEqual(new Set([400]));
      const answers = await quotes(50);
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
      expect(Math.max(...[...crowd.flat(), ...answers].map(({ tookMs }) => tookMs))).toBeLessThan(3_000);
      expect(api.child.stdout?.readableFlowing).toBe(false);
      const before = performance.now();
      expect(await api.end(signal)).toBe('SIGKILL');
      expect(performance.now() - before).toBeLessThan(10_000);
      // Thousands of calls take a minute on a busy machine.
    },
    180_000,
  );
});

/** Loaded ahead of the API: at each SIGUSR2 its standard output becomes a disk without room, or with it. */
const DISK = `import { closeSync, openSync } from 'node:fs';
let full = false;
process.on('SIGUSR2', () => {
  full = !full;
  closeSync(1);
  openSync(full ? '/dev/full' : process.env.LOG_WITH_ROOM, 'a');
});`;

test('a log on a full disk stalls no request and no end of the process, and its lines wait for room', async () => {
  const directory = await temporaryDirectory('full-log');
  const withRoom = join(directory, 'log');
  try {
    await start({
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(DISK)}`,
      LOG_WITH_ROOM: withRoom,
    });
    api.child.kill('SIGUSR2');
    const answers: { status: number }[] = [];
    // It writes ten times a second.
    for (const endMs = performance.now() + 1_000; performance.now() < endMs;)
      answers.push(...(await quotes(1)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    api.child.kill('SIGUSR2');
    const lines = async () =>
      (await readFile(withRoom, 'utf8').catch(() => '')).split('"msg":"request"').length - 1;
    await until(async () => (await lines()) === answers.length, 'every line is there');
    api.child.kill('SIGUSR2');
    expect((await quotes(1))[0]?.status).toBe(200);
    expect(await api.end('SIGTERM')).toBe(0);
  } finally {
    await removeDirectory(directory);
  }
});

test('SIGHUP lets an API process read its certificate again, and no request fails', async () => {
  await start();
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
});
