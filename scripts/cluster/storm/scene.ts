import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { Agent } from 'undici';
import { connectDatabase, type Database } from '../../../db/postgres/connect';
import { readConfig } from '../../../runtime/config/config';
import { temporalTarget } from '../../../runtime/temporal/temporal-target';
import { startDnsServer } from '../../../test/support/dns-server';
import { openAsking } from '../../../test/storm/asking';
import { openParties, type Parties } from '../../../test/storm/parties';
import { LADDER, type StormSight } from '../../../test/storm/scene';
import { bringUp, type Cluster } from '../bring-up';
import { ADDRESSES, PARTNER_ADDRESS } from '../network';
import { missingMetrics } from './alerts';
import { openTimeline, type Timeline } from './timeline';
import { openWitness, type Witness } from './witness';

/** The machines that have a proxy, Postgres, Temporal, an API process and a worker. */
export const TWINS = ['a', 'b'] as const;
export type Twin = (typeof TWINS)[number];

export interface ClusterScene extends StormSight {
  readonly cluster: Cluster;
  readonly deliveries: Timeline;
  readonly witness: Witness;
  close(): Promise<void>;
}

interface SceneOptions {
  readonly directory: string;
  readonly partners: number;
  readonly say: (text: string) => void;
}

/** The whole cluster, with partners who receive webhooks. */
export async function openClusterScene({ directory, partners, say }: SceneOptions): Promise<ClusterScene> {
  let parties: Parties | undefined;
  let database: Database | undefined;
  // What only a storm sets: partners call more than a hundred times a minute, and retries come soon.
  const unlimited = {
    RATE_LIMIT_PER_MINUTE: '10000000',
    KEYLESS_CALLS_PER_MINUTE: '10000000',
    LOG_LEVEL: 'warn',
  };
  const extra = {
    'quotes/api.env': unlimited,
    'quotes/worker.env': {
      DELIVERY_LADDER_SECONDS: LADDER,
      WEBHOOK_CA_FILE: '/srv/quotes/etc/quotes/receiver-ca.pem',
      RETENTION_AT: 'off',
      LOG_LEVEL: 'warn',
    },
  };
  const cluster = await bringUp({
    directory,
    say,
    extra,
    async onSchema({ databaseUrl, machines, secrets }) {
      database = connectDatabase({
        url: databaseUrl,
        poolSize: 4,
        applicationName: 'storm',
        statementTimeoutMs: 60_000,
      });
      const at = { host: PARTNER_ADDRESS, port: 443 };
      await startDnsServer((_name, type) => (type === 'A' ? [PARTNER_ADDRESS] : []), { ...at, port: 53 });
      parties = await openParties(database, { partners, keyRing: secrets.WEBHOOK_KEYS, at });
      for (const name of TWINS)
        writeFileSync(join(machines[name].srv, 'etc/quotes/receiver-ca.pem'), parties.receiver.ca, {
          mode: 0o644,
        });
      await database.sql`create table storm_words (word text primary key)`;
    },
  });
  const unserved = await missingMetrics(cluster.patroni);
  if (unserved.length > 0) throw new Error(`deploy/cluster/alerts.yml names ${unserved.join(', ')}`);
  if (parties === undefined || database === undefined) throw new Error('the schema was not announced');
  const deliveries = openTimeline();
  const { received } = parties.receiver;
  const push = received.push.bind(received);
  received.push = (...items) => {
    deliveries.mark();
    return push(...items);
  };
  const { namespace, connection: how } = temporalTarget(readConfig(cluster.temporalEnvironment));
  const connection = Connection.lazy(how);
  const agent = new Agent({ connect: { ca: cluster.authority, timeout: 2_000 }, connections: 16 });
  const { ask, ...heard } = openAsking();
  let turn = 0;
  const { machines } = cluster;
  return {
    ...parties,
    ...heard,
    cluster,
    database,
    deliveries,
    witness: openWitness(),
    temporal: { client: new Client({ connection, namespace }) },
    /** At either proxy in turn; a partner's time is limited. */
    ask(wanted) {
      turn += 1;
      const address = ADDRESSES[TWINS[turn % 2] ?? 'a'];
      const base = wanted.internal ? `https://${address}:8444` : `https://${address}`;
      return ask(wanted, { base, agent, timeoutMs: 12_000 });
    },
    outputs: () => TWINS.flatMap((name) => [machines[name].log('api'), machines[name].log('worker')]),
    async close() {
      await Promise.race([agent.destroy(), sleep(1_000)]);
      await connection.close().catch(() => undefined);
    },
  };
}
