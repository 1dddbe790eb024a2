import { Agent, request } from 'undici';
import { goodQuote, startTestApi, type TestApi } from '../support/api';
import { startApiProcess, type ApiProcess } from '../support/api-process';
import { until } from '../support/delivery';
import { startOwnPostgres, type OwnPostgres } from '../support/postgres-server';
import { migrateWithLogins } from '../support/roles';

jest.setTimeout(90_000);

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

let postgres: OwnPostgres;
/** Issues the keys and looks into the database. */
let admin: TestApi;
let api: ApiProcess;

beforeAll(async () => {
  postgres = await startOwnPostgres();
  await migrateWithLogins(postgres.url);
  admin = await startTestApi({ databaseUrl: postgres.url });
});
afterAll(async () => {
  await api?.close();
  await admin.close();
  await postgres.close();
});

interface Load {
  /** Ids that were answered with 200. */
  readonly answered: string[];
  /** Statuses of all answers, and the codes of the errors of those that never came. */
  readonly outcomes: Map<number | string, number>;
  stop(): Promise<void>;
}

/** Keeps `connections` requests under way until it is stopped. */
function load(target: ApiProcess, connections: number): Load {
  const agent = new Agent({ connect: { ca: target.ca }, connections });
  const answered: string[] = [];
  const outcomes: Load['outcomes'] = new Map();
  let stopped = false;
  const count = (outcome: number | string) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  const one = async () => {
    while (!stopped) {
      try {
        const answer = await request(`https://127.0.0.1:${target.port}/v1/finance-quote`, {
          method: 'POST',
          dispatcher: agent,
          headers: { authorization: `Bearer ${admin.keys.test}`, 'content-type': 'application/json' },
          body: JSON.stringify(goodQuote),
        });
        const body = (await answer.body.json()) as { data?: { service_quote_id: string } };
        count(answer.statusCode);
        if (body.data) answered.push(body.data.service_quote_id);
      } catch (error) {
        count(String((error as { code?: string }).code));
        await pause(20);
      }
    }
  };
  const running = Array.from({ length: connections }, one);
  return {
    answered,
    outcomes,
    async stop() {
      stopped = true;
      await Promise.all(running);
      await agent.destroy();
    },
  };
}

async function missing(ids: readonly string[]): Promise<string[]> {
  const stored = new Set<string>();
  const rows = await admin.database.sql`select quote_id from quotes`;
  for (const row of rows) stored.add(String(row['quote_id']));
  return ids.filter((id) => !stored.has(id));
}

test('Postgres killed under load: every id that was answered is stored', async () => {
  api = await startApiProcess({ databaseUrl: postgres.url });
  const traffic = load(api, 32);
  for (let kills = 0; kills < 3; kills += 1) {
    await pause(500);
    await postgres.kill();
    await pause(200);
    await postgres.start();
    await pause(700);
  }
  const before = traffic.answered.length;
  await until(async () => traffic.answered.length > before, 'answers after the last start', 10_000);
  await traffic.stop();
  expect(new Set(traffic.outcomes.keys())).toEqual(new Set([200, 500]));
  expect(await missing(traffic.answered)).toEqual([]);
});

test('the API killed under load: every id that was answered is stored', async () => {
  const victim = await startApiProcess({ databaseUrl: postgres.url });
  const traffic = load(victim, 32);
  while (traffic.answered.length <= 50) await pause(20);
  await victim.end('SIGKILL');
  await pause(100);
  await traffic.stop();
  await victim.close();
  expect(traffic.outcomes.get(500)).toBeUndefined();
  expect(await missing(traffic.answered)).toEqual([]);
});

test('SIGTERM under load: what was accepted is answered, then it leaves with 0', async () => {
  const victim = await startApiProcess({ databaseUrl: postgres.url });
  const traffic = load(victim, 16);
  await pause(500);
  const code = await victim.end('SIGTERM');
  await traffic.stop();
  await victim.close();
  expect(code).toBe(0);
  expect(traffic.outcomes.get(200)).toBeGreaterThan(16);
  // What comes after the end is refused; nothing else fails.
  expect(new Set(traffic.outcomes.keys())).toEqual(new Set([200, 'ECONNREFUSED']));
});
