import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ADDRESSES, type MachineName } from '../network';
import type { PatroniView } from '../patroni';

const FILE = join(__dirname, '../../../deploy/cluster/alerts.yml');

/** Metrics that the cluster's alerts name and nothing here serves; an alert on such a metric would never fire, or always. */
export async function missingMetrics(patroni: PatroniView): Promise<string[]> {
  const page = (name: MachineName, port: number) =>
    fetch(`http://${ADDRESSES[name]}:${port}/metrics`).then((answer) => answer.text());
  const pages = await Promise.all([patroni.metrics('a'), page('a', 2381), page('a', 8404)]);
  const served = pages.join('\n');
  const names = new Set(readFileSync(FILE, 'utf8').match(/\b(?:patroni|etcd|haproxy)_\w+/g));
  return [...names].filter((name) => !new RegExp(`^${name}[{ ]`, 'm').test(served));
}

/** What `PostgresHasNoSynchronousStandby` adds up. */
export async function synchronousStandbys(patroni: PatroniView): Promise<number> {
  const pages = await Promise.all((['a', 'b'] as const).map((name) => patroni.metrics(name).catch(() => '')));
  return [...pages.join('\n').matchAll(/^patroni_sync_standby\S* (\d)/gm)].reduce(
    (sum, [, one]) => sum + Number(one),
    0,
  );
}
