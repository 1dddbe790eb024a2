import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { onPath } from '../support/on-path';
import { needs } from '../support/needs';
import { removeDirectory, temporaryDirectory } from '../support/temporary-directory';
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

test('each section says when the alert fires and how grave it is, and has a first command and one for the log', () => {
  for (const { alert, labels } of rules) {
    const section = sections.get(alert) ?? '';
    expect({ alert, section }).toEqual({
      alert,
      section: expect.stringMatching(/^- \*\*First\*\*: `[^`]+`$[^]*^- \*\*Log\*\*: `[^`]+`/m),
    });
    expect({ alert, section }).toEqual({
      alert,
      section: expect.stringContaining(`- **Fires** (${labels.severity}): `),
    });
  }
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

  test('finds that each alert fires on series of its fault, and on none of a healthy service', async () => {
    expect(Object.keys(ALERT_SERIES).toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
    const directory = await temporaryDirectory('promtool');
    const files: string[] = [];
    /** Each alert alone, so that a run evaluates one rule and not all. */
    const add = async (
      alert: string,
      tests: readonly object[],
      file = join(directory, `${alert}.tests.yml`),
    ) => {
      const only = join(directory, `${alert}.rules.yml`);
      const group = { name: alert, rules: rules.filter((rule) => rule.alert === alert) };
      await writeFile(only, stringify({ groups: [group] }));
      await writeFile(file, stringify({ rule_files: [only], tests }));
      files.push(file);
    };
    const external = { runbooks: 'https://handbook.example/operations' };
    const givenUp = (endpoint: string, reason: string) => ({
      exp_labels: { severity: 'warning', endpoint, reason },
      exp_annotations: {
        summary: `The service has disabled endpoint ${endpoint}: ${reason}.`,
        runbook_url: 'https://handbook.example/operations/alerts.md#endpointdisabled',
      },
    });
    const ofTheOther = givenUp('whe_2', 'failing');
    try {
      for (const [alert, { at = '3h', series }] of Object.entries(ALERT_SERIES))
        await add(
          alert,
          (['fault', 'healthy'] as const).map((kind) => ({
            name: `${alert}, ${kind}`,
            interval: '1m',
            external_labels: external,
            input_series: Object.entries(series).map(([name, values]) => ({
              series: name,
              values: typeof values === 'string' ? values : values[kind],
            })),
            promql_expr_test: [
              {
                expr: `count(ALERTS{alertname="${alert}", alertstate="firing"}) > bool 0 or vector(0)`,
                eval_time: at,
                exp_samples: [{ value: kind === 'fault' ? 1 : 0 }],
              },
            ],
          })),
        );
      const exp_annotations = {
        summary: 'pfqs-api on api-1:8081 does not answer.',
        runbook_url: 'https://handbook.example/operations/alerts.md#processdown',
      };
      const exp_labels = { severity: 'critical', job: 'pfqs-api', instance: 'api-1:8081' };
      await add(
        'ProcessDown',
        [
          {
            name: 'what an alert says',
            interval: '1m',
            external_labels: external,
            input_series: [{ series: 'up{job="pfqs-api", instance="api-1:8081"}', values: '0x10' }],
            alert_rule_test: [
              {
                alertname: 'ProcessDown',
                eval_time: '5m',
                exp_alerts: [{ exp_labels, exp_annotations }],
              },
            ],
          },
        ],
        join(directory, 'words.tests.yml'),
      );
      await add(
        'EndpointDisabled',
        [
          {
            name: 'an endpoint is named until it is repaired, whatever another does',
            interval: '1m',
            external_labels: external,
            input_series: [
              {
                series: 'pfqs_webhook_endpoint_given_up{endpoint="whe_1", reason="gone", instance="a"}',
                values: '1x10 stale',
              },
              {
                series: 'pfqs_webhook_endpoint_given_up{endpoint="whe_2", reason="failing", instance="a"}',
                values: '1x20',
              },
            ],
            alert_rule_test: [
              { eval_time: '10m', exp_alerts: [givenUp('whe_1', 'gone'), ofTheOther] },
              { eval_time: '11m', exp_alerts: [ofTheOther] },
            ].map((one) => ({ alertname: 'EndpointDisabled', ...one })),
          },
        ],
        join(directory, 'endpoints.tests.yml'),
      );
      expect(promtool('test', 'rules', ...files).match(/SUCCESS/g)).toHaveLength(files.length);
    } finally {
      await removeDirectory(directory);
    }
  }, 120_000);
});
