import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client, Connection } from '@temporalio/client';
import { Agent } from 'undici';
import { readConfig } from '../../../runtime/config/config';
import { temporalTarget } from '../../../runtime/temporal/temporal-target';
import { keepChanges } from '../../model/tools/kept';
import { openAsking } from '../asking';
import { openParties } from '../parties';
import { LADDER, type StormSight } from '../scene';
import { openDatabaseAt } from '../../support/database';
import { startDnsServer } from '../../support/dns-server';
import { bringUp, type BringUpOptions, type Cluster } from '../../../scripts/cluster/bring-up';
import type { Machine } from '../../../scripts/cluster/machine';
import { ADDRESSES, type MachineName, PARTNER_ADDRESS, TWINS } from '../../../scripts/cluster/network';
import type { PatroniView } from '../../../scripts/cluster/patroni';

export interface ClusterScene extends StormSight {
  readonly cluster: Cluster;
  readonly deliveries: ReturnType<typeof openTimeline>;
  readonly witness: ReturnType<typeof openWitness>;
  close(): Promise<void>;
}

/** Of the scripts for backups, and of psql. */
export const POSTGRES = {
  BACKUPS: '/srv/quotes/backups',
  PGDATA: '/srv/quotes/postgres/data',
  PGHOST: '/srv/quotes/postgres',
  POSTGRES_HOST: '/srv/quotes/postgres',
};

/** The whole cluster, with partners who receive webhooks. */
export async function openClusterScene({
  directory,
  say,
}: Pick<BringUpOptions<unknown>, 'directory' | 'say'>): Promise<ClusterScene> {
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
      const options = { poolSize: 4, applicationName: 'storm', statementTimeoutMs: 60_000 };
      const database = openDatabaseAt(databaseUrl, options);
      await keepChanges(database.sql);
      const at = { host: PARTNER_ADDRESS, port: 443 };
      await startDnsServer((_name, type) => (type === 'A' ? [PARTNER_ADDRESS] : []), { ...at, port: 53 });
      const parties = await openParties(database, { partners: 4, keyRing: secrets.WEBHOOK_KEYS, at });
      for (const name of TWINS)
        writeFileSync(join(machines[name].srv, 'etc/quotes/receiver-ca.pem'), parties.receiver.ca, {
          mode: 0o644,
        });
      await database.sql`create table storm_words (word text primary key)`;
      return { parties, database };
    },
  });
  const leader = cluster.machines[(await cluster.patroni.leader()) ?? 'a'];
  await leader.run('postgres', ['bash', '/srv/quotes/app/deploy/postgres/backup.sh'], POSTGRES);
  const unserved = await missingMetrics(cluster.patroni);
  if (unserved.length > 0) throw new Error(`deploy/cluster/alerts.yml names ${unserved.join(', ')}`);
  const { parties, database } = cluster.prepared;
  const deliveries = openTimeline();
  const { received } = parties.receiver;
  const push = received.push.bind(received);
  received.push = (...items) => {
    deliveries.mark();
    return push(...items);
  };
  const { namespace, connection: how } = temporalTarget(readConfig(cluster.temporalEnvironment));
  const connection = Connection.lazy(how);
  const connect = { ca: cluster.authority, timeout: 2_000 };
  const dispatcher = new Agent({ connect, connections: 16, headersTimeout: 12_000, bodyTimeout: 12_000 });
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
      const origin = wanted.internal ? `https://${address}:8444` : `https://${address}`;
      return ask(wanted, { origin, dispatcher });
    },
    outputs: () => TWINS.flatMap((name) => [machines[name].log('api'), machines[name].log('worker')]),
    async close() {
      await Promise.race([dispatcher.destroy(), sleep(1_000)]);
      await connection.close().catch(() => undefined);
    },
  };
}

const FILE = join(__dirname, '../../../deploy/cluster/alerts.yml');

/** Metrics that the cluster's alerts name and nothing here serves; an alert on such a metric would never fire, or always. */
async function missingMetrics(patroni: PatroniView): Promise<string[]> {
  const page = (name: MachineName, port: number) =>
    fetch(`http://${ADDRESSES[name]}:${port}/metrics`).then((answer) => answer.text());
  const pages = await Promise.all([patroni.metrics('a'), page('a', 2381), page('a', 8404)]);
  const served = pages.join('\n');
  const names = new Set(readFileSync(FILE, 'utf8').match(/\b(?:patroni|etcd|haproxy)_\w+/g));
  return [...names].filter((name) => !new RegExp(`^${name}[{ ]`, 'm').test(served));
}

/** What `PostgresHasNoSynchronousStandby` adds up. */
export async function synchronousStandbys(patroni: PatroniView): Promise<number> {
  const pages = await Promise.all(TWINS.map((name) => patroni.metrics(name).catch(() => '')));
  const found = [...pages.join('\n').matchAll(/^patroni_sync_standby\S* (\d)/gm)];
  if (found.length === 0) throw new Error('no Patroni has answered with its metrics');
  return found.reduce((sum, [, one]) => sum + Number(one), 0);
}

/** Longest wait for one commit: what hangs has not been acknowledged. */
const COMMIT_S = 2;

/** Writes at a Postgres that no longer leads, but may not know it: whatever it acknowledges must be in the cluster afterwards. */
function openWitness() {
  const acknowledged: string[] = [];
  let tried = 0;
  return {
    acknowledged,
    tried: () => tried,
    /** Writes to the Postgres of a machine again and again, for `ms`, while the load continues. */
    async watch(machine: Machine, ms: number): Promise<void> {
      const until = performance.now() + ms;
      while (performance.now() < until) {
        tried += 1;
        const word = `${machine.name}-${tried}`;
        const sql = `insert into storm_words values ('${word}')`;
        const psql = ['psql', '--no-psqlrc', '-h', '/srv/quotes/postgres', '-d', 'quotes', '-c', sql];
        await machine.run('postgres', ['timeout', '-s', 'KILL', String(COMMIT_S), ...psql]).then(
          () => acknowledged.push(word),
          () => undefined,
        );
        await sleep(500);
      }
    },
  };
}

/** The moments of successes, and the spans in which none is expected. */
export function openTimeline() {
  const marks: number[] = [];
  const excuses: { readonly fromMs: number; untilMs: number }[] = [];
  const excusedMs = (fromMs: number, untilMs: number) =>
    excuses.reduce(
      (sum, one) => sum + Math.max(0, Math.min(untilMs, one.untilMs) - Math.max(fromMs, one.fromMs)),
      0,
    );
  return {
    mark: () => void marks.push(performance.now()),
    /** Time from now on, until the returned function is called, that does not count. */
    excuse() {
      const one = { fromMs: performance.now(), untilMs: Number.POSITIVE_INFINITY };
      excuses.push(one);
      return () => void (one.untilMs = performance.now());
    },
    /** Longest time without a success since a moment of `performance.now()`, until now, in seconds. */
    longestPauseS(sinceMs: number): number {
      const since = [...marks.filter((ms) => ms >= sinceMs), performance.now()];
      const gaps = since.map((ms, at) => {
        const before = since[at - 1] ?? sinceMs;
        return ms - before - excusedMs(before, ms);
      });
      return Math.round(Math.max(...gaps) / 100) / 10;
    },
  };
}
