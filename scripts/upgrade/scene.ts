import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { createPartner } from '../../db/catalogue/partners';
import { issueKey } from '../../db/keys/api-key-changes';
import { issueServiceKey } from '../../db/keys/service-keys';
import { connectDatabase, type Database } from '../../db/postgres/connect';
import { startApiProcess } from '../../test/support/api-process';
import { freePort } from '../../dev/free-port';
import { addEndpoint } from '../../test/support/notifications';
import { startOwnPostgres } from '../../test/support/postgres-server';
import { openProductionTemporal, type ProductionTemporal } from '../../test/support/production-temporal';
import { startNode, type ProjectProcess } from '../../test/support/project-process';
import { asRole, migrateWithLogins } from '../../test/support/roles';
import { removeDirectory, temporaryDirectory } from '../../test/support/temporary-directory';
import { startWebhookReceiver, type WebhookReceiver } from '../../test/support/webhook-receiver';
import type { LenderScene } from '../../test/storm/lenders';

const root = join(__dirname, '../..');
const BUILD = 'rehearsal';

/** Partners by what their endpoint does: it answers, it fails until it is mended, there is none yet. */
export const PARTNERS = { well: 'P300001', down: 'P300002', absent: 'P300003', tester: 'P300004' } as const;

/** A whole service: one API, two workers with a build id, two receivers, and Temporal as in production, in whatever version. */
export interface UpgradeScene extends LenderScene {
  readonly temporal: ProductionTemporal;
  readonly database: Database;
  /** `well` also receives for `tester` and, once registered, for `absent`. */
  readonly receivers: { readonly well: WebhookReceiver; readonly down: WebhookReceiver };
  readonly testerKey: string;
  /** Path of the dynamic configuration that the first version runs with. */
  readonly olderConfig: string;
  /** Runs a command of `ops`. @throws with its output when it fails. */
  ops(...args: string[]): Promise<void>;
  /** Gives the partner without an endpoint one. */
  registerAbsent(): Promise<void>;
  close(): Promise<void>;
}

export interface SceneOptions {
  readonly versions: readonly string[];
  readonly dynamicConfig: string;
  readonly say: (text: string) => void;
}

/** Everything but the workers; Temporal runs in the first version. */
export async function openUpgradeScene({
  versions,
  dynamicConfig,
  say,
}: SceneOptions): Promise<UpgradeScene> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).toReversed()) await closer();
  };
  try {
    const directory = await temporaryDirectory('upgrade');
    closers.push(() => removeDirectory(directory));
    const [first = ''] = versions;
    const temporal = await openProductionTemporal(versions);
    closers.push(() => temporal.close());
    const dynamicFile = join(directory, 'dynamic-config.yaml');
    await writeFile(dynamicFile, dynamicConfig);
    await temporal.updateSchema(first);
    temporal.start(first, dynamicFile);
    const store = await startOwnPostgres();
    closers.push(() => store.close());
    await migrateWithLogins(store.url);
    const database = connectDatabase({
      url: store.url,
      poolSize: 4,
      applicationName: 'rehearsal',
      statementTimeoutMs: 60_000,
    });
    closers.push(() => database.close());

    const well = await startWebhookReceiver(() => 200);
    closers.push(() => well.close());
    const down = await startWebhookReceiver(() => 503);
    closers.push(() => down.close());
    const keyRing = `k1:${randomBytes(32).toString('base64')}`;
    const { db } = database;
    const keys = new Map<string, string>();
    for (const partnerId of Object.values(PARTNERS)) {
      await createPartner(db, { partnerId, name: 'Rehearsal' });
      const wanted = { partnerId, environment: 'sandbox', expiresInSeconds: null } as const;
      keys.set(partnerId, (await db.transaction((tx) => issueKey(tx, wanted))).key);
    }
    const register = (partnerId: string, { url }: WebhookReceiver) =>
      addEndpoint(database, { partnerId, url, keyRing });
    await register(PARTNERS.well, well);
    await register(PARTNERS.tester, well);
    await register(PARTNERS.down, down);
    const { key: serviceKey } = await issueServiceKey(db, {
      name: 'Rehearsal',
      lender: 'lender_a',
      environment: 'sandbox',
      expiresInSeconds: null,
    });

    const caFile = join(directory, 'receivers.pem');
    await writeFile(caFile, well.ca + down.ca);
    const settings = {
      ...well.environment,
      WEBHOOK_ALLOWED_PORTS: `${well.port},${down.port}`,
      WEBHOOK_CA_FILE: caFile,
      WEBHOOK_KEYS: keyRing,
      RETENTION_AT: 'off',
      LOG_LEVEL: 'warn',
      ...temporal.environment,
    };
    const node = (args: string[], environment: Record<string, string>): ProjectProcess =>
      startNode(['--import', 'tsx', ...args], { cwd: root, environment: { ...settings, ...environment } });
    const completed = async (what: string, one: ProjectProcess) => {
      if ((await one.ended) !== 0) throw new Error(`${what} failed:\n${one.output()}`);
    };
    say(`Temporal ${first} starts; namespace, API, two workers`);
    await completed('prepare-temporal', node(['bin/prepare-temporal.ts'], {}));
    const api = await startApiProcess({ databaseUrl: store.url, environment: { LOG_LEVEL: 'warn' } });
    closers.push(() => api.close());
    for (const nth of [1, 2]) {
      const port = String(await freePort());
      const worker = node(['bin/worker.ts', `--nth=${nth}`], {
        DATABASE_URL: asRole(store.url, 'worker'),
        WORKER_BUILD_ID: BUILD,
        WORKER_PORT: port,
      });
      closers.push(async () => {
        worker.child.kill('SIGTERM');
        await worker.ended;
      });
      await untilReady(port, worker);
    }
    const ops = (...args: string[]) =>
      completed(
        `ops ${args.join(' ')}`,
        node(['bin/ops.ts', ...args], { DATABASE_URL: asRole(store.url, 'ops'), OPS_ACTOR: 'rehearsal' }),
      );
    await ops('deployments', 'set-current', BUILD);

    const agent = new Agent({ connect: { ca: api.ca } });
    closers.push(() => agent.destroy());
    return {
      temporal,
      database,
      receivers: { well, down },
      olderConfig: dynamicFile,
      testerKey: keys.get(PARTNERS.tester) ?? '',
      partners: [{ partnerId: PARTNERS.well, apiKey: keys.get(PARTNERS.well) ?? '', secret: '' }],
      serviceKey,
      async ask({ internal, path, key, body }) {
        const base = internal ? `http://127.0.0.1:${api.internalPort}` : `https://127.0.0.1:${api.port}`;
        const headers = {
          authorization: `Bearer ${key}`,
          ...(body !== null && { 'content-type': 'application/json' }),
        };
        const text = body === null ? null : JSON.stringify(body);
        const options = {
          method: 'POST',
          headers,
          body: text,
          ...(!internal && { dispatcher: agent }),
        } as const;
        const answer = await request(`${base}${path}`, options).catch(() => null);
        return answer && { status: answer.statusCode, body: await answer.body.json() };
      },
      ops,
      registerAbsent: async () => void (await register(PARTNERS.absent, well)),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function untilReady(port: string, worker: ProjectProcess): Promise<void> {
  for (let tries = 0; tries < 900; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);
    // Its build is not current yet.
    if (answer !== undefined) return;
    if (worker.child.exitCode !== null) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`a worker does not start:\n${worker.output()}`);
}
