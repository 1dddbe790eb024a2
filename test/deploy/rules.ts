import { readFileSync } from 'node:fs';
import { join } from 'node:path';
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
