import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';

export interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

export const RULES_FILE = join(__dirname, '../../deploy/prometheus/alerts.yml');

/** The alerts, as deploy/prometheus/alerts.yml has them. */
export function readRules(): Rule[] {
  const { groups } = parse(readFileSync(RULES_FILE, 'utf8')) as { groups: { rules: Rule[] }[] };
  return groups.flatMap(({ rules }) => rules);
}

/** What Grafana puts in for the variables of the dashboard when "All" is chosen. */
export const withVariables = (expression: string, rateInterval = '5m') =>
  expression.replaceAll('$__rate_interval', rateInterval).replaceAll(/\$(?:instance|environment)/g, '.*');

/**
 * Reads PromQL with Prometheus' own grammar: its metrics, each with the labels that are matched on it, and the labels that it groups by.
 * @throws when it is none.
 */
export function readExpression(expression: string) {
  const text = withVariables(expression);
  const metrics: { name: string; labels: string[] }[] = [];
  const groupedBy: string[] = [];
  let grouping = false;
  parser.parse(text).iterate({
    enter(node) {
      const word = text.slice(node.from, node.to);
      if (node.type.isError) throw new Error(`no PromQL at ${node.from}: ${expression}`);
      if (node.name === 'Identifier') metrics.push({ name: word, labels: [] });
      if (node.name === 'GroupingLabels') grouping = true;
      if (node.name === 'LabelName') (grouping ? groupedBy : metrics.at(-1)?.labels)?.push(word);
    },
    leave(node) {
      if (node.name === 'GroupingLabels') grouping = false;
    },
  });
  return { metrics, groupedBy };
}
