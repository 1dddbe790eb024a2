import type { ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { issueKey } from '../../db/keys';
import { goodQuote } from '../support/api';
import type { ApiProcess } from '../support/api-process';
import { openCrashScene, type CrashScene } from '../support/crash-scene';
import { until } from '../support/delivery';
import { internalClient, type InternalClient } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { testTemporal } from '../support/temporal';
import { runDirectory } from '../support/temporary-directory';

/**
 * The guided tour in docs/architecture.md lists the files of ours in which a function runs during a quote, an event and a resend, each
 * file where it comes first. Each flow runs here in the real processes, and V8 says which functions were called.
 */

const temporal = testTemporal();
const ROOT = join(__dirname, '../..');
/** Loops of a worker that run once in some seconds or minutes, whatever is asked. */
const LOOPS =
  /^worker\/(keeper|reconciler|recoverer|overdue-events)\.ts$|^db\/(audit\/operator-events|notifications\/(hold|recovery))\.ts$/;
const FLOWS = { quote: 22, event: 33, resend: 12 };
type Flow = keyof typeof FLOWS;

const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8');
function listed(flow: Flow): string[] {
  const [, part = ''] = page.split(new RegExp(`^### The files of an? ${flow}$`, 'm'));
  const [list = ''] = part.split(/^#/m);
  return [...list.matchAll(/^- `([\w./-]+)`/gm)].map(([, file = '']) => file);
}

const directory = runDirectory('tour');
let scene: CrashScene;
let lender: InternalClient;
let partner: (path: string, body?: unknown) => ReturnType<ApiProcess['call']>;
let processes: readonly (readonly [ChildProcess, string])[];

beforeAll(async () => {
  scene = await openCrashScene({ temporal });
  const { database, partnerId } = scene;
  const probed = (file: string) => ({
    NODE_OPTIONS: `--require=${join(ROOT, 'test/support/tour-probe.cjs')}`,
    TOUR_FILE: file,
    LOG_LEVEL: 'info',
  });
  const [asked, working] = [join(directory, 'api'), join(directory, 'worker')];
  // TEMPORAL_DEBUG: workflows run in the main thread, where the probe is.
  const [api, worker] = await Promise.all([
    scene.api(probed(asked)),
    scene.worker({ ...probed(working), TEMPORAL_DEBUG: '1' }, 'fast'),
  ]);
  processes = [
    [api.child, asked],
    [worker.child, working],
  ];
  lender = await internalClient({ internalPort: api.internalPort, database });
  const wanted = { partnerId, environment: 'sandbox', expiresInSeconds: null } as const;
  const { key } = await database.db.transaction((tx) => issueKey(tx, wanted));
  partner = (path, body) => api.call({ path, key, body });
}, 180_000);

afterAll(async () => {
  await scene.close();
});

/** @returns files in which a function was called while this ran, in the API and, for an event, in the worker. */
async function called(run: () => Promise<unknown>, watched = processes): Promise<string[]> {
  const take = async () => {
    const lists = watched.map(async ([child, file]) => {
      rmSync(file, { force: true });
      child.kill('SIGUSR2');
      await until(() => Promise.resolve(existsSync(file)), 'the probe has written');
      return JSON.parse(readFileSync(file, 'utf8')) as string[];
    });
    const files = new Set((await Promise.all(lists)).flat());
    return [...files].filter((file) => file.endsWith('.ts') && !LOOPS.test(file)).toSorted();
  };
  await take();
  await run();
  return take();
}

async function story() {
  const api = processes.slice(0, 1);
  let quoted: Awaited<ReturnType<typeof partner>> | undefined;
  const quote = await called(async () => {
    quoted = await partner('/v1/finance-quote', { ...goodQuote, merchant_id: SHOP });
  }, api);
  const opened = await lender.openLink(quoted?.body.data.products[0].merchant_finance_url);
  const { credit_application_id: id } = opened.body.data;
  const delivered = async () => (await scene.ended()).at(-1)?.id;
  await delivered();
  const event = await called(async () => {
    const occurred_at = new Date().toISOString();
    await lender.tell(id, { lender_event_id: `le-${id}`, status: 'referred', occurred_at });
    await delivered();
    await sleep(500);
  });
  const notification = await delivered();
  const resend = await called(() => partner(`/v1/notifications/${notification}/resend`), api);
  await delivered();
  return { quote, event, resend };
}

test('the guided tour names the files that run, each where it comes first', async () => {
  await story();
  const idle = await called(() => sleep(2_500));
  // A timer that fires meanwhile does not do so three times.
  const stories = [await story(), await story(), await story()];
  const known = new Set(idle);
  const ran: Record<string, string[]> = {};
  for (const flow of Object.keys(FLOWS) as Flow[]) {
    const [own = [], ...more] = stories.map((one) => one[flow]);
    ran[flow] = own.filter((file) => !known.has(file) && more.every((other) => other.includes(file)));
    for (const file of ran[flow]) known.add(file);
  }
  for (const [flow, most] of Object.entries(FLOWS)) {
    const named = listed(flow as Flow).filter((file) => file.endsWith('.ts'));
    // Statements in .sql files run in Postgres.
    expect({ flow, files: named.filter((file) => !idle.includes(file)).toSorted() }).toEqual({
      flow,
      files: ran[flow],
    });
    expect(listed(flow as Flow).length).toBeLessThanOrEqual(most);
  }
}, 120_000);
