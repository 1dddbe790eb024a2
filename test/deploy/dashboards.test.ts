import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { testTemporal } from '../support/temporal';
import { scrapeAfterTraffic, type MetricPages } from './metrics-scene';
import { readExpression, readRules, type Rule } from './rules';

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}

const root = join(__dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const { panels } = JSON.parse(read('deploy/grafana/dashboard.json')) as { panels: readonly Panel[] };
const rules = readRules();

/** Prometheus makes these itself: whether a scrape succeeded, and what it adds to every sample. */
const OF_PROMETHEUS = { metric: 'up', labels: ['job', 'instance'] };

const temporal = testTemporal();
let pages: MetricPages;
beforeAll(async () => {
  pages = await scrapeAfterTraffic(temporal);
}, 300_000);

/** What of an expression no process serves. */
function unserved(expression: string, words: string): string[] {
  const { metrics, groupedBy } = readExpression(expression);
  expect(metrics.length).toBeGreaterThan(0);
  const shown = [...words.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label = '']) => label);
  const known = new Set(OF_PROMETHEUS.labels);
  const missing: string[] = [];
  for (const { name, labels } of metrics) {
    if (name !== OF_PROMETHEUS.metric && !pages.served.has(name)) missing.push(name);
    for (const label of pages.served.get(name) ?? []) known.add(label);
    const own = new Set([...(pages.served.get(name) ?? []), ...OF_PROMETHEUS.labels]);
    missing.push(...labels.filter((label) => !own.has(label)).map((label) => `${name}{${label}}`));
  }
  return [...missing, ...[...groupedBy, ...shown].filter((label) => !known.has(label))];
}

test('a dashboard shows nothing that API or worker does not serve', () => {
  const shown = panels.flatMap(({ title, targets = [] }) => targets.map((target) => ({ title, ...target })));
  expect(shown.length).toBeGreaterThan(50);
  expect(
    shown.flatMap(({ title, expr, legendFormat }) =>
      unserved(expr, legendFormat).map((what) => `${title}: ${what}`),
    ),
  ).toEqual([]);
});

/** What node_exporter and blackbox_exporter serve (test/deploy/exporters.test.ts), and no process of ours. */
const OF_EXPORTERS = /^(?:node_|probe_|pfqs_backup_)/;
const areOurs = ({ expr }: Rule) => !readExpression(expr).metrics.some(({ name }) => OF_EXPORTERS.test(name));

test('an alert asks for nothing that API or worker does not serve', () => {
  expect(rules.filter(areOurs).length).toBeGreaterThan(30);
  expect(
    rules
      .filter(areOurs)
      .flatMap(({ alert, expr, annotations }) =>
        unserved(expr, annotations.summary).map((what) => `${alert}: ${what}`),
      ),
  ).toEqual([]);
});

test('a failed test is counted as one, and not as a lost event of an application', () => {
  const ended = (event: string) =>
    Number(
      new RegExp(
        `^pfqs_notifications_ended_total\\{state="failed",reason="exhausted",event="${event}"\\} (\\d+)$`,
        'm',
      ).exec(pages.text)?.[1],
    );
  expect(ended('test')).toBeGreaterThan(0);
  expect(ended('application')).toBe(0);
});

test('what we serve ourselves is on the dashboard or in an alert', () => {
  const asked = [
    ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...rules.map(({ expr }) => expr),
  ].join('\n');
  const ours = [...pages.served.keys()].filter((name) => name.startsWith('pfqs_'));
  const families = new Set(ours.map((name) => name.replace(/_(?:bucket|sum|count)$/, '')));
  expect([...families].filter((name) => !asked.includes(name))).toEqual([]);
});
