import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { createPartner } from '../../db/catalogue/partners';
import { createResolver } from '../../outbound/names';
import { createSender, type SenderOptions } from '../../outbound/sender';
import { addEndpoint, newKeyRingText } from '../../testbed/notifications';
import { createTestTls } from '../../testbed/tls';
import { useDatabase } from './database';
import { startTestWorker, type TestWorker } from './delivery';
import { startDnsServer, type DnsAnswer } from './dns-server';
import { randomTaskQueue, testTemporal } from './temporal';

interface Host {
  readonly host: string;
  readonly addresses: readonly string[];
}

interface OutsideOptions {
  /** Partners whose endpoints share no domain and no address. */
  readonly partners: readonly (Host & { readonly partnerId: string })[];
  /** Hosts beside theirs. */
  readonly others?: readonly Host[];
  /** Where addresses are. */
  readonly cidr: string;
  readonly timeouts?: SenderOptions['timeouts'];
  /** Settings of the worker. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** Partners outside, each under a name and an address of its own, with one receiver behind all of them, and a worker that sends to them. */
export function useOutside({ partners, others = [], cidr, timeouts, environment = {} }: OutsideOptions) {
  const hosts = [...partners, ...others];
  const temporal = testTemporal();
  const keys = newKeyRingText();
  let certificates: Awaited<ReturnType<typeof createTestTls>>;
  let receiver: Server | null = null;
  const closers: (() => unknown)[] = [];
  const outside = {
    temporal,
    port: 0,
    worker: {} as TestWorker,
    sender: {} as ReturnType<typeof createSender>,
    /** What the name server answers to every question about these hosts; null: as they are. */
    spoiled: null as { readonly hosts: readonly string[]; readonly answer: DnsAnswer } | null,
    closeIdle: () => receiver?.closeIdleConnections(),
    async openReceiver(): Promise<void> {
      const server = createServer(certificates, (request, response) => {
        request.resume().on('end', () => response.end());
      });
      await once(server.listen(outside.port, '0.0.0.0'), 'listening');
      outside.port = (server.address() as AddressInfo).port;
      receiver = server;
    },
    async closeReceiver(): Promise<void> {
      const server = receiver;
      receiver = null;
      if (server === null) return;
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
  // Before the database goes.
  afterAll(async () => {
    for (const close of closers.toReversed()) await close();
  });
  const database = useDatabase({ poolSize: 6, statementTimeoutMs: 0 });
  beforeAll(async () => {
    certificates = await createTestTls(hosts.map(({ host }) => ({ type: 'dns', value: host })));
    const dns = await startDnsServer((name, type) => {
      if (outside.spoiled?.hosts.includes(name)) return outside.spoiled.answer;
      const known = hosts.find(({ host }) => host === name);
      return known === undefined ? { rcode: 3 } : type === 'A' ? known.addresses : [];
    });
    closers.push(() => dns.close());
    await outside.openReceiver();
    closers.push(() => outside.closeReceiver());
    const resolver = createResolver([dns.address]);
    closers.push(() => resolver.cancel());
    outside.sender = createSender({
      allowedCidrs: [cidr],
      allowedPorts: [outside.port],
      resolver,
      ca: certificates.ca,
      ...(timeouts && { timeouts }),
      now: Date.now,
    });
    for (const { partnerId, host } of partners) {
      await createPartner(database.db, { partnerId, name: 'Example' });
      await addEndpoint(database, { partnerId, url: `https://${host}:${outside.port}/`, keyRing: keys });
    }
    outside.worker = await startTestWorker({
      databaseUrl: database.url,
      temporal,
      taskQueue: randomTaskQueue(),
      receiver: { ca: certificates.ca, environment: { ENVIRONMENT: 'development' } },
      keys,
      environment,
      send: outside.sender.send,
    });
    closers.push(() => outside.worker.close());
    await outside.worker.ready();
  }, 300_000);
  return { outside, database };
}

/** For how long the worker has reached nobody, as its metric says. */
export const outageSeconds = async ({ worker }: TestWorker) =>
  (await worker.registry.getSingleMetric('pfqs_network_outage_seconds')?.get())?.values[0]?.value;
