import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { TlsOptions } from 'node:tls';
import type { Database } from '../../db/postgres/connect';
import { createPartner } from '../../db/catalogue/partners';
import { createResolver } from '../../outbound/connect';
import { createSender } from '../../outbound/sender';
import {
  authority,
  certificateFor,
  closeAll,
  closeLater,
  startRawReceiver,
  startReceiver,
} from '../outbound/partner';
import { openTestDatabase } from '../support/database';
import { startTestWorker, until, type TestWorker } from '../support/delivery';
import { startDnsServer, type DnsAnswer } from '../support/dns-server';
import { addEndpoint, newKeyRingText, storeTest } from '../support/notifications';
import { randomTaskQueue, testTemporal, type TestTemporal } from '../support/temporal';

/** Where the hostile receivers are: the one private address that the worker may go to. */
export const HERE = '127.1.2.3';
/** Each told from the others, and long enough for honest answers on a busy machine. */
export const LIMITS = { dnsMs: 1_500, connectMs: 1_800, headersMs: 2_000, bodyMs: 700, totalMs: 4_000 };

export interface Attempt {
  readonly outcome: string;
  readonly failure: string | null;
  readonly status: number | null;
  readonly durationMs: number;
  readonly address: string | null;
  readonly answer: string | null;
}

export type Seen = Awaited<ReturnType<typeof lookAt>>;
type Scene = Awaited<ReturnType<typeof openScene>>;
type HostilePartner = Awaited<ReturnType<Scene['partner']>>;

/** A real worker with short limits, a DNS server, and a trap for connections that may not be. */
async function openScene(temporal: TestTemporal) {
  const database = await openTestDatabase({ poolSize: 8, statementTimeoutMs: 0 });
  const answers = new Map<string, (type: 'A' | 'AAAA') => DnsAnswer>();
  const dns = closeLater(
    await startDnsServer((name, type) => answers.get(name)?.(type) ?? (type === 'A' ? [HERE] : [])),
  );
  const ca = (await authority).cert;
  const resolver = createResolver([dns.address]);
  const sender = closeLater(
    createSender({
      allowedCidrs: [`${HERE}/32`, '100::/64'],
      allowedPorts: Array.from({ length: 65_535 }, (_, at) => at + 1),
      resolver,
      ca,
      timeouts: LIMITS,
      now: Date.now,
    }),
  );
  const keys = newKeyRingText();
  const worker = await startTestWorker({
    databaseUrl: database.url,
    temporal,
    taskQueue: randomTaskQueue('hostile'),
    receiver: { ca, environment: { ENVIRONMENT: 'development' } },
    keys,
    // Jitter adds up to a second to a step that is not 0.
    environment: { TEST_LADDER_SECONDS: '0,0,0', DELIVERY_LADDER_SECONDS: '0,1,1' },
    send: (request) => sender.send(request),
  });
  const trap = await startTrap();
  let partners = 300_000;

  const look = (notificationId: string) => lookAt(database, worker, notificationId);
  return {
    /** A port that answers on every address of this machine, and must never be connected to. */
    trap,
    async partner() {
      partners += 1;
      const partnerId = `P${partners}`;
      const host = `n${partners}.partner.test`;
      await createPartner(database.db, { partnerId, name: host });
      return {
        /** The name its endpoint has, which leads to `HERE` unless told otherwise. */
        host,
        /** What DNS says of it. */
        resolve: (answer: (type: 'A' | 'AAAA') => DnsAnswer) => void answers.set(host, answer),
        register: (url: string) => addEndpoint(database, { partnerId, url, keyRing: keys }),
        send: () => storeTest(database, { partnerId }),
      };
    },
    /** Waits until nothing more happens to it. */
    async ended(notificationId: string) {
      const open = async () => ['queued', 'started'].includes((await look(notificationId)).state);
      await until(async () => !(await open()), `the end of ${notificationId}`, 60_000);
      return look(notificationId);
    },
    /** Attempts by outcome, from the worker's metrics. */
    async counted(outcome: string): Promise<number> {
      const count = `^pfqs_delivery_attempt_seconds_count\\{.*outcome="${outcome}"\\} (\\d+)$`;
      return Number(new RegExp(count, 'm').exec(await worker.worker.registry.metrics())?.[1] ?? 0);
    },
    async close() {
      await worker.close();
      resolver.cancel();
      await closeAll();
      trap.close();
      await database.close();
    },
  };
}

/** What is known of a notification. */
async function lookAt({ sql }: Database, { logs }: TestWorker, notificationId: string) {
  const [row] = await sql<
    { state: string; reason: string | null; reservedMonth: string | null; endpoint: string }[]
  >`
    select n.state, end_reason as reason, reserved_month::text as "reservedMonth",
      (select concat_ws(': ', e.state, e.disabled_reason) from webhook_endpoints e
        where e.partner_id = n.partner_id and e.state <> 'removed') as endpoint
    from notifications_now n where notification_id = ${notificationId}`;
  if (row === undefined) throw new Error(`${notificationId} does not exist`);
  const attempts = await sql<Attempt[]>`
    select coalesce(outcome, 'under way') as outcome, failure, http_status as status,
      duration_ms as "durationMs", address, answer
    from delivery_attempts where notification_id = ${notificationId} order by attempt_number`;
  /** Of the worker, that name it. */
  const warnings = logs.filter((line) => line.includes(notificationId) && line.includes('"level":40'));
  /** Of its attempts: `http_status`, `delivered` … */
  const words = attempts.map(({ outcome, failure }) => failure ?? outcome);
  return { ...row, attempts: [...attempts], words, warnings };
}

/** Listens on every address, of both families. */
async function startTrap() {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  }).listen(0, '::');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    close: () => void server.close(),
  };
}

type Listener = Parameters<typeof startReceiver>[0];
type OnData = Parameters<typeof startRawReceiver>[0];

const wildcard = certificateFor('*.partner.test');

/** An HTTPS server of a partner, certified for every name of the scene. */
export async function receiver(listener: Listener, tls: TlsOptions = {}) {
  return closeLater(await startReceiver(listener, { address: HERE, tls: { ...(await wildcard), ...tls } }));
}

/** The same, byte for byte. */
export async function rawReceiver(onData: OnData) {
  return closeLater(await startRawReceiver(onData, { address: HERE, tls: await wildcard }));
}

/**
 * Call it at the top of a file. `row` declares a test of one notification; all deliveries of a file begin at once, and each test
 * looks at its own.
 */
export function hostileRows() {
  const temporal = testTemporal();
  const begins: ((scene: Scene) => Promise<string>)[] = [];
  const ids: string[] = [];
  let opened: Scene | undefined;
  const scene = () => {
    if (opened === undefined) throw new Error('the scene is there from beforeAll on');
    return opened;
  };
  beforeAll(async () => {
    const current = await openScene(temporal);
    opened = current;
    ids.push(...(await Promise.all(begins.map((begin) => begin(current)))));
  }, 120_000);
  afterAll(() => opened?.close());
  return {
    scene,
    /** @param begin registers an endpoint, to which a test notification is then sent. */
    row: (
      name: string,
      begin: (partner: HostilePartner, scene: Scene) => Promise<unknown>,
      look: (seen: Seen, scene: Scene) => unknown,
    ) => {
      const at =
        begins.push(async (current) => {
          const partner = await current.partner();
          await begin(partner, current);
          return (await partner.send()).notificationId;
        }) - 1;
      test(name, async () => look(await scene().ended(ids[at] ?? ''), scene()), 60_000);
    },
  };
}
