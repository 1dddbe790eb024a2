import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../testbed/until';
import { needs, onPath } from '../support/needs';
import { testTemporal } from '../support/temporal';
import { scrapeAfterTraffic, type MetricPages } from './metrics-scene';
import { openPrograms, RUNBOOKS, type Programs } from './prometheus';
import { readExpression, readRules, withVariables, type Rule } from './rules';

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat?: string }[];
  readonly fieldConfig?: {
    readonly defaults: { readonly thresholds?: { readonly steps: readonly { value: number | null }[] } };
  };
}

const root = join(__dirname, '../..');
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const dashboard = JSON.parse(read('deploy/grafana/dashboard.json')) as {
  readonly panels: readonly Panel[];
  readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
  readonly templating: { readonly list: readonly { readonly query: string | { readonly query: string } }[] };
};
const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const targets = panels.flatMap(({ title, targets: asked = [] }) =>
  asked.map(({ expr, legendFormat = '' }) => ({ title, expr, legendFormat })),
);
const rules = readRules();

/** Prometheus makes these itself: whether a scrape succeeded, and what it adds to every sample; and which alerts fire. */
const OF_PROMETHEUS = ['up', 'ALERTS'];
const LABELS_OF_PROMETHEUS = ['job', 'instance'];
/** What node_exporter and blackbox_exporter serve (test/deploy/exporters.test.ts), and no process of ours. */
const OF_EXPORTERS = /^(?:node_|probe_|pfqs_backup_)/;

const areOurs = ({ expr }: Pick<Rule, 'expr'>) =>
  !readExpression(expr).metrics.some(({ name }) => OF_EXPORTERS.test(name));

const temporal = testTemporal();
const hasPrometheus = onPath('prometheus') !== undefined;
let programs: Programs;
let ask: Awaited<ReturnType<Programs['startPrometheus']>>;
/** After the traffic, while everything still ran, in Unix seconds. */
let watchedAt: number;
let pages: MetricPages;
beforeAll(async () => {
  programs = await openPrograms();
  pages = await scrapeAfterTraffic(temporal, async ({ api, worker }) => {
    if (!hasPrometheus) return () => Promise.resolve();
    const machine = await programs.startNodeExporter();
    ask = await programs.startPrometheus({ 'pfqs-api': api, 'pfqs-worker': worker, 'pfqs-machine': machine });
    return async () => {
      // A counter's rate needs two scrapes, and alerts a round.
      await until(async () => (await ask('ALERTS{alertstate="firing"}')).length > 0, 'an alert');
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      watchedAt = Date.now() / 1_000;
    };
  });
}, 300_000);
afterAll(() => programs.close());

/** What of an expression no process serves. */
function unserved(expression: string, words: string): string[] {
  const { metrics, groupedBy } = readExpression(expression);
  expect(metrics.length).toBeGreaterThan(0);
  const shown = [...words.matchAll(/\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}/g)].map(([, label = '']) => label);
  const known = new Set(LABELS_OF_PROMETHEUS);
  const missing: string[] = [];
  for (const { name, labels } of metrics) {
    if (OF_PROMETHEUS.includes(name)) continue;
    if (!pages.served.has(name)) missing.push(name);
    for (const label of pages.served.get(name) ?? []) known.add(label);
    const own = new Set([...(pages.served.get(name) ?? []), ...LABELS_OF_PROMETHEUS]);
    missing.push(...labels.filter((label) => !own.has(label)).map((label) => `${name}{${label}}`));
  }
  return [...missing, ...[...groupedBy, ...shown].filter((label) => !known.has(label))];
}

// The table of alerts makes a label of its own.
const ON_PANELS = targets
  .filter((target) => areOurs(target) && !target.expr.includes('label_replace'))
  .map(({ title, expr, legendFormat }) => ({ name: title, expr, words: legendFormat }));
const IN_ALERTS = rules
  .filter(areOurs)
  .map(({ alert, expr, annotations }) => ({ name: alert, expr, words: annotations.summary }));
test.each([
  ['a dashboard shows', ON_PANELS, 50],
  ['an alert asks for', IN_ALERTS, 30],
])('%s nothing that API or worker does not serve', (_who, asked, atLeast) => {
  expect(asked.length).toBeGreaterThan(atLeast);
  const missing = asked.flatMap(({ name, expr, words }) =>
    unserved(expr, words).map((what) => `${name}: ${what}`),
  );
  expect(missing).toEqual([]);
});

test('each panel has a description; an alert that it names exists, and its line stands where that alert fires', () => {
  for (const { title, description = '', fieldConfig } of panels) {
    expect({ title, words: description.length > 3 }).toEqual({ title, words: true });
    const named = /Alerts?: (.*)/.exec(description)?.[1] ?? '';
    const alerts = [...named.matchAll(/\b[A-Z][a-z]+(?:[A-Z][a-z]+)+/g)].map(([name]) => name);
    const fires = rules.filter(({ alert }) => alerts.includes(alert)).map(({ expr }) => expr);
    expect({ title, alerts: fires.length }).toEqual({ title, alerts: alerts.length });
    const limit = fieldConfig?.defaults.thresholds?.steps.at(-1)?.value;
    if (limit == null || alerts.length !== 1) continue;
    const limits = fires.flatMap((expr) =>
      // What fires at 0 is well from 1 on.
      [...expr.matchAll(/([<>=]+)\s*([\d.e]+)/g)].map(([, is, at]) => Number(at) + (is === '==' ? 1 : 0)),
    );
    expect({ title, limits }).toEqual({ title, limits: expect.arrayContaining([limit]) });
  }
});

needs('Prometheus')('a running Prometheus', () => {
  const all = (expression: string) => withVariables(expression, '20s');
  // A machine may have none but overlays.
  const MAY_BE_EMPTY = ['Room on disks'];

  it.each(targets)('answers $title with series: $expr', async ({ title, expr }) => {
    const series = await ask(all(expr), watchedAt);
    if (!MAY_BE_EMPTY.includes(title)) expect(series.length).toBeGreaterThan(0);
  });

  it('knows the values of each variable, and when a release or a process began', async () => {
    const queries = dashboard.templating.list.flatMap(({ query }) =>
      typeof query === 'string' ? [] : [/^label_values\((.+), (\w+)\)$/.exec(query.query)!.slice(1)],
    );
    const values = queries.map(async ([series = '', label = '']) =>
      (await ask(`group by (${label}) (${series})`, watchedAt)).map(({ metric }) => metric[label]),
    );
    expect(await Promise.all(values)).toEqual([
      [expect.any(String), expect.any(String), expect.any(String)],
      expect.arrayContaining(['sandbox', 'live']),
    ]);
    const marks = Object.fromEntries(dashboard.annotations.list.map(({ name, expr }) => [name, expr]));
    expect(Object.keys(marks)).toEqual(['Releases', 'Restarts']);
    const [first] = await ask('min_over_time(timestamp(up{job="pfqs-api"})[10m:1s])', watchedAt);
    expect(await ask(marks['Releases']!, Number(first!.value[1]) + 1)).toMatchObject([
      { metric: { build: 'none' } },
    ]);
    expect(await ask(marks['Restarts']!, watchedAt)).toEqual([]);
  });

  it('names the runbooks with each alert that fires', async () => {
    const firing = await ask('ALERTS{alertstate="firing"}', watchedAt);
    expect(firing.map(({ metric }) => metric['alertname'])).toContain('EndpointDisabled');
    for (const { metric } of firing) expect(metric['runbooks']).toBe(RUNBOOKS);
  });
});

test('an idle worker asks Temporal for sends, as SendsNotPolled expects', () => {
  const pollers = pages.text.split('\n').filter((line) => line.startsWith('temporal_num_pollers{'));
  const ofSends = pollers.filter(
    (line) => /poller_type="activity_task"/.test(line) && /task_queue="[^"]+-sends"/.test(line),
  );
  expect(ofSends).toHaveLength(1);
  expect(Number(ofSends[0]?.split(' ').at(-1))).toBeGreaterThan(0);
});

test('a failed test is counted as one, and not as a lost event of an application', () => {
  const exhausted = 'pfqs_notifications_ended_total{state="failed",reason="exhausted"';
  expect(pages.text).toContain(`${exhausted},event="test"} `);
  expect(pages.text).not.toContain(`${exhausted},event="test"} 0\n`);
  expect(pages.text).toContain(`${exhausted},event="application"} 0\n`);
});

test('what we serve ourselves is on the dashboard or in an alert', () => {
  const asked = [
    ...targets.map(({ expr }) => expr),
    ...dashboard.annotations.list.map(({ expr }) => expr),
    ...rules.map(({ expr }) => expr),
  ].join('\n');
  const ours = [...pages.served.keys()].filter((name) => name.startsWith('pfqs_'));
  const families = new Set(ours.map((name) => name.replace(/_(?:bucket|sum|count)$/, '')));
  expect([...families].filter((name) => !asked.includes(name))).toEqual([]);
});
