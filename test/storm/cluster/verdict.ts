import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Finding } from '../finding';
import { findings } from '../findings';
import { missing, type Rows } from '../stored';
import { untilTrue } from '../../../scripts/cluster/machine';
import type { StormRun } from './run';
import { POSTGRES, type ClusterScene } from './scene';

/** What the storm showed. The verdict is the last line of `npm run storm:cluster -- --json`. */
export async function judge(scene: ClusterScene, run: StormRun) {
  const { receiver, answered, witness } = scene;
  const { load, kills, pauses } = run;
  const { sql } = scene.database;
  const restored = await restoredQuotes(scene);
  const quotes: Finding = {
    invariant: '    every quote that was answered is stored',
    looked: load.quotes.length,
    seen: `${load.quotes.length} answered, ${load.refused()} refused or not answered`,
    offenders: await missing(load.quotes, sql<Rows>`select quote_id as id from quotes`),
  };
  const all: readonly Finding[] = [
    quotes,
    {
      invariant: '    quotes and deliveries are back within the limits of each loss',
      looked: pauses.length,
      seen: `${pauses.length} losses`,
      offenders: pauses
        .filter(({ blow, quotesS, deliveriesS }) => quotesS > 45 || deliveriesS > (blow.deliveriesS ?? 60))
        .map(({ blow, quotesS, deliveriesS }) => `${blow.what}: ${quotesS} s and ${deliveriesS} s`),
    },
    {
      invariant: '    what a Postgres acknowledged that had lost the lead is stored',
      looked: witness.tried(),
      // Only some blows leave a Postgres that may believe it leads.
      optional: true,
      seen: `${witness.acknowledged.length} of ${witness.tried()} tries were acknowledged`,
      offenders: await missing(witness.acknowledged, sql<Rows>`select word as id from storm_words`),
    },
    {
      invariant: '    backup and archive of all leaders restore every quote that was answered',
      looked: load.quotes.length,
      seen: `${restored.size} quotes restored`,
      offenders: load.quotes.filter((id) => !restored.has(id)),
    },
    ...(await findings(scene, run)),
  ];
  const broken = (...texts: readonly string[]) =>
    all
      .filter(({ invariant }) => texts.some((text) => invariant.includes(text)))
      .reduce((sum, { offenders }) => sum + offenders.length, 0);
  const taken = receiver.received.flatMap(({ headers }, nth) =>
    answered[nth] === 200 ? [String(headers['webhook-id'])] : [],
  );
  return {
    findings: all,
    verdict: {
      quotes_answered: load.quotes.length,
      quotes_lost: quotes.offenders.length,
      notifications: all.find(({ invariant }) => invariant.startsWith('I1'))?.looked,
      // Not ended or not stored; received but not stored.
      notifications_lost: broken('I1 ', 'sequence of every application', 'I5 '),
      miscounted: broken('I3 '),
      /** Events that a receiver took more than once. */
      repeats: taken.length - new Set(taken).size,
      /** But for the time without a majority of etcd. */
      longest_without_quotes_s: run.longestWithoutQuotesS,
      longest_delivery_pause_s: run.longestDeliveryPauseS,
      kills: Object.fromEntries(Object.entries(kills.counts).filter(([, times]) => times > 0)),
    },
  };
}

/** Restores the backup and all that was archived since on machine c, which has no Postgres. @returns ids */
async function restoredQuotes({ cluster }: ClusterScene): Promise<ReadonlySet<string>> {
  const leader = cluster.machines[(await cluster.patroni.leader()) ?? 'a'];
  const sql = 'select pg_walfile_name(pg_switch_wal())';
  const wal = await leader.run('postgres', ['psql', '-Atc', sql], POSTGRES);
  const file = join(cluster.backups, 'archive', `${wal.trim()}.gz`);
  await untilTrue(`${file} is there`, 60_000, () => existsSync(file));
  const options = '-c ssl=off -c archive_mode=off -c listen_addresses=';
  const script = `bash /srv/quotes/app/deploy/postgres/restore.sh
    ${cluster.postgresBin}/pg_ctl -l /srv/quotes/postgres/log -o '${options}' start
    until [ "$(psql -Atc 'select pg_is_in_recovery()')" = f ]; do sleep 1; done
    psql -d quotes -Atc 'select quote_id from quotes'`;
  const printed = await cluster.machines.c.run(
    'postgres',
    ['timeout', '120', 'bash', '-euc', script],
    POSTGRES,
  );
  return new Set(printed.split('\n').filter((line) => line.startsWith('qte_')));
}
