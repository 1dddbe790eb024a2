import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { goodQuote, startTestApi, type TestApi } from '../support/api';
import { startApiProcess, type ApiProcess } from '../support/api-process';
import { until } from '../support/delivery';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';

jest.setTimeout(60_000);

/** Issues the keys and looks into the database. */
let admin: TestApi;
let directory: string;
/** Loaded ahead of the API: on SIGUSR2 it makes a fault that nobody waits for. */
let saboteur: string;
beforeAll(async () => {
  admin = await startTestApi();
  directory = await temporaryDirectory('saboteur');
  saboteur = join(directory, 'saboteur.cjs');
  await writeFile(
    saboteur,
    `process.on('SIGUSR2', () => void Promise.reject(new Error('nobody waits for this')));`,
  );
});
afterAll(async () => {
  await admin.close();
  await removeDirectory(directory);
});

async function quotes(target: ApiProcess, agent: Agent, options: { count: number; key: string | null }) {
  const answers: { status: number; id: string | undefined; tookMs: number }[] = [];
  for (let calls = 0; calls < options.count; calls += 1) {
    const before = performance.now();
    const answer = await request(`https://127.0.0.1:${target.port}/v1/finance-quote`, {
      method: 'POST',
      dispatcher: agent,
      headers: {
        'content-type': 'application/json',
        ...(options.key !== null && { authorization: `Bearer ${options.key}` }),
      },
      body: JSON.stringify(goodQuote),
    });
    const body = (await answer.body.json()) as { data?: { service_quote_id: string } };
    const tookMs = performance.now() - before;
    answers.push({ status: answer.statusCode, id: body.data?.service_quote_id, tookMs });
  }
  return answers;
}

test('a rejection that nobody handles: logged, and the process leaves with 1; rows stay', async () => {
  const api = await startApiProcess({
    databaseUrl: admin.databaseUrl,
    environment: { NODE_OPTIONS: `--require ${saboteur}` },
  });
  const agent = new Agent({ connect: { ca: api.ca } });
  const answered = await quotes(api, agent, { count: 5, key: admin.keys.test });
  expect(await api.end('SIGUSR2')).toBe(1);
  await agent.destroy();
  const fatal = api
    .output()
    .split('\n')
    .filter((line) => line.includes('"level":60'))
    .map((line) => JSON.parse(line) as { origin: string; err: { message: string; stack: string } });
  expect(fatal).toMatchObject([
    {
      origin: 'unhandledRejection',
      msg: 'uncaught error',
      err: { message: 'nobody waits for this', stack: expect.stringContaining('saboteur.cjs') },
    },
  ]);
  const ids = answered.map(({ id }) => id ?? '');
  const rows = await admin.database.sql`select 1 from quotes where quote_id = any(${ids})`;
  expect(rows.count).toBe(5);
  await api.close();
});

test('SIGTERM under load: what was accepted is answered, then it leaves with 0', async () => {
  const api = await startApiProcess({ databaseUrl: admin.databaseUrl });
  const agent = new Agent({ connect: { ca: api.ca }, connections: 16 });
  const outcomes: (number | string)[] = [];
  const load = Array.from({ length: 16 }, async () => {
    while (outcomes.at(-1) !== 'ECONNREFUSED')
      await quotes(api, agent, { count: 1, key: admin.keys.test }).then(
        ([answer]) => outcomes.push(answer?.status ?? 'none'),
        (error: { code?: string }) => outcomes.push(String(error.code)),
      );
  });
  await until(() => outcomes.length > 50, 'it is under load');
  expect(await api.end('SIGTERM')).toBe(0);
  await Promise.all(load);
  await agent.destroy();
  await api.close();
  // What comes after the end is refused; nothing else fails.
  expect(new Set(outcomes)).toEqual(new Set([200, 'ECONNREFUSED']));
});

describe('a log that nobody reads', () => {
  test.each<[NodeJS.Signals, number]>([
    ['SIGTERM', 0],
    ['SIGUSR2', 1],
  ])('stalls no request, and after %s the process leaves with %i', async (signal, code) => {
    const api = await startApiProcess({
      databaseUrl: admin.databaseUrl,
      environment: { NODE_OPTIONS: `--require ${saboteur}` },
    });
    // Its pipe fills up.
    api.child.stdout?.pause();
    const agent = new Agent({ connect: { ca: api.ca }, connections: 8 });
    // About 2 MiB of lines: more than the pipe and the backlog hold together.
    const crowd = await Promise.all(
      Array.from({ length: 8 }, () => quotes(api, agent, { count: 1_250, key: null })),
    );
    expect(new Set(crowd.flat().map(({ status }) => status))).toEqual(new Set([401]));
    const answers = await quotes(api, agent, { count: 50, key: admin.keys.test });
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(Math.max(...[...crowd.flat(), ...answers].map(({ tookMs }) => tookMs))).toBeLessThan(3_000);
    expect(api.child.stdout?.readableFlowing).toBe(false);
    await agent.destroy();
    const before = performance.now();
    expect(await api.end(signal)).toBe(code);
    expect(performance.now() - before).toBeLessThan(10_000);
    await api.close();
  });
});
