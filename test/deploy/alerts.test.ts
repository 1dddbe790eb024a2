import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { needs, onPath } from '../support/needs';
import { runDirectory } from '../../testbed/temporary-directory';
import { projectFiles, root } from '../docs/tree';
import { readRules, RULES_FILE } from './rules';
import { ALERT_SERIES } from './alert-series';

const rules = readRules();
const ruleOf = (name: string) => rules.find(({ alert }) => alert === name) ?? rules[0]!;
const handbook = readFileSync(join(root, 'docs/operations/alerts.md'), 'utf8');
/** Of each alert. */
const sections = new Map(
  handbook
    .split(/^## /m)
    .slice(1)
    .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);

test('each alert has a severity, a summary, and an absolute address of its section', () => {
  for (const { alert, labels, annotations } of rules) {
    expect(['critical', 'warning', 'info']).toContain(labels.severity);
    expect(annotations.summary).not.toBe('');
    expect(annotations.runbook_url).toBe(`{{ $externalLabels.runbooks }}/alerts.md#${alert.toLowerCase()}`);
  }
});

test('the handbook has a section for each alert, and for no other', () => {
  expect(new Set(sections.keys())).toEqual(new Set(rules.map(({ alert }) => alert)));
});

test.each(rules)('the section on $alert says when it fires and how grave that is', (rule) => {
  expect(sections.get(rule.alert)).toContain(`- **Fires** (${rule.labels.severity}): `);
});

/** Words of other programs: Postgres, HAProxy, Temporal, cron. */
const OTHERS = ['archive', 'No space left', 'tls.pem', 'certificate', '"level":"error"', 'backup', 'redis'];
/** Parts of a line of ours, whatever its message. */
const FIELDS = [
  '"level":[45]0',
  '"msg":"attempt"',
  '"outcome":"failed"',
  '"failure":"timeout"',
  '"status":429',
];

test('what a section looks for in the log is what the service writes', () => {
  const code = projectFiles
    .filter((file) => /^(api|activities|db|domain|outbound|runtime|worker)\/.*\.ts$/.test(file))
    .map((file) => readFileSync(join(root, file), 'utf8'))
    .join('\n');
  const sought = [...handbook.matchAll(/grep (?:-c )?'?([^'`]+?)'?(?=`| \|)/g)].flatMap(([, words = '']) =>
    words.split(String.raw`\|`),
  );
  expect(sought.length).toBeGreaterThan(20);
  const known = (words: string) => code.includes(words) || OTHERS.includes(words) || FIELDS.includes(words);
  expect(sought.filter((words) => !known(words))).toEqual([]);
});

test('MemoryGrows fires before the container of a process is full', () => {
  const { services } = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
    services: Record<string, { mem_limit?: string }>;
  };
  const [, bytes = ''] = />\s*([\d.e]+)$/.exec(ruleOf('MemoryGrows').expr) ?? [];
  const limits = ['api-1', 'api-2', 'worker-1', 'worker-2'].map((name) => {
    const [, figure = '', unit = ''] = /^(\d+)([mg])$/.exec(services[name]?.mem_limit ?? '') ?? [];
    return Number(figure) * (unit === 'g' ? 2 ** 30 : 2 ** 20);
  });
  for (const limit of limits) expect(Number(bytes)).toBeLessThan(0.75 * limit);
});

needs('Prometheus')('promtool', () => {
  const promtool = (...args: string[]) =>
    execFileSync(onPath('promtool') ?? '', args, { cwd: root, stdio: 'pipe' }).toString();

  test('takes rules and configuration', () => {
    expect(promtool('check', 'rules', RULES_FILE)).toContain(`SUCCESS: ${rules.length} rules found`);
    expect(promtool('check', 'config', 'deploy/prometheus/prometheus.yml')).toContain('SUCCESS');
  });

  /** Runs promtool's own tests, each with its alert's rule alone, so that a run evaluates one rule and not all. */
  async function expectPassed(
    tests: readonly { readonly alert: string; readonly [field: string]: unknown }[],
  ) {
    const directory = runDirectory('promtool');
    const files = tests.map(async ({ alert, ...fields }, nth) => {
      const only = join(directory, `${nth}.rules.yml`);
      const group = { name: alert, rules: rules.filter((rule) => rule.alert === alert) };
      await writeFile(only, stringify({ groups: [group] }));
      const file = join(directory, `${nth}.tests.yml`);
      const external_labels = { runbooks: 'https://handbook.example/operations' };
      const one = { interval: '1m', external_labels, ...fields };
      await writeFile(file, stringify({ rule_files: [only], tests: [one] }));
      return file;
    });
    const passed = promtool('test', 'rules', ...(await Promise.all(files)));
    expect(passed.match(/SUCCESS/g)).toHaveLength(tests.length);
  }

  test('finds that each alert fires on series of its fault, and on none of a healthy service', async () => {
    expect(Object.keys(ALERT_SERIES).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
    await expectPassed(
      Object.entries(ALERT_SERIES).flatMap(([alert, series]) =>
        [0, 1].map((healthy) => ({
          alert,
          input_series: Object.entries(series).map(([name, values]) => ({
            series: name,
            values: typeof values === 'string' ? values : values[healthy],
          })),
          promql_expr_test: [
            {
              expr: `count(ALERTS{alertname="${alert}", alertstate="firing"}) > bool 0 or vector(0)`,
              // The time of these tests begins at 0, and a backup is old after a day.
              eval_time: alert === 'BackupOld' ? '30h' : '3h',
              exp_samples: [{ value: 1 - healthy }],
            },
          ],
        })),
      ),
    );
  });

  const says = (alert: string, exp_labels: object, summary: string) => ({
    exp_labels: { ...exp_labels, runbooks: 'https://handbook.example/operations' },
    exp_annotations: {
      summary,
      runbook_url: `https://handbook.example/operations/alerts.md#${alert.toLowerCase()}`,
    },
  });
  const givenUp = (endpoint: string, reason: string) =>
    says(
      'EndpointDisabled',
      { severity: 'warning', endpoint, reason },
      `The service has disabled endpoint ${endpoint}: ${reason}.`,
    );

  test('finds that an alert names its process, and an endpoint until that is repaired', async () => {
    const labels = { severity: 'critical', job: 'pfqs-api', instance: 'api-1:8081' };
    const down = says('ProcessDown', labels, 'pfqs-api on api-1:8081 does not answer.');
    const disabled = (endpoint: string, reason: string, values: string) => ({
      series: `pfqs_webhook_endpoint_given_up{endpoint="${endpoint}", reason="${reason}", instance="a"}`,
      values,
    });
    await expectPassed([
      {
        alert: 'ProcessDown',
        input_series: [{ series: 'up{job="pfqs-api", instance="api-1:8081"}', values: '0x10' }],
        alert_rule_test: [{ alertname: 'ProcessDown', eval_time: '5m', exp_alerts: [down] }],
      },
      {
        alert: 'EndpointDisabled',
        input_series: [disabled('whe_1', 'gone', '1x10 stale'), disabled('whe_2', 'failing', '1x20')],
        alert_rule_test: [
          { eval_time: '10m', exp_alerts: [givenUp('whe_1', 'gone'), givenUp('whe_2', 'failing')] },
          { eval_time: '11m', exp_alerts: [givenUp('whe_2', 'failing')] },
        ].map((one) => ({ alertname: 'EndpointDisabled', ...one })),
      },
    ]);
  });
});
