export const OPERATOR_EVENT_KINDS = [
  /** An endpoint has answered nothing but failures for 24, 48 or 96 hours. */
  'endpoint_failing',
  /** Its first 2xx after such a warning. */
  'endpoint_recovered',
  /** It answered 410, or nothing but failures for 120 hours. */
  'endpoint_disabled',
  /** The network of a worker reaches nobody. */
  'network_cut_off',
  /** It reaches partners again. */
  'network_back',
  /** Workflows of deliveries under way are missing in Temporal, or no worker can continue them. */
  'workflows_lost',
  /** Held notifications that expire within seven days; once a day while there are any. */
  'notifications_expiring',
  /** Held for 30 days, and expired. */
  'notifications_expired',
  /** A lender skipped required steps; after the wait its application was moved on without them. */
  'lender_steps_missing',
  /** A lender reported a state that cannot follow: after an end, or a step back. It was not applied. */
  'lender_contradiction',
  /** More than 20 applications were opened from one quote. */
  'quote_crowded',
  /** A run of the retention removed more than what comes of age in a day (domain/retention.ts). */
  'retention_removed_much',
] as const;

export type OperatorEventKind = (typeof OPERATOR_EVENT_KINDS)[number];

export function describeOperatorEvent(kind: OperatorEventKind, details: Record<string, unknown>): string {
  const times = `${String(details['failures'])} failures in ${String(details['hours'])} h`;
  const count = `${String(details['count'])} held notifications`;
  switch (kind) {
    case 'retention_removed_much': {
      const what = `${String(details['rows'])} rows of ${String(details['what'])}, of ${String(details['first'])} to ${String(details['last'])}`;
      return `one run removed ${what}, more than a day makes due: are the days that are kept and the clocks as they should be? ops retention show`;
    }
    case 'endpoint_failing':
      return `no success: ${times}; tell the partner, after 120 h it is disabled`;
    case 'endpoint_recovered':
      return `recovered after ${times}`;
    case 'endpoint_disabled':
      return details['reason'] === 'gone'
        ? 'disabled, it answered 410: ask the partner, then ops webhooks enable'
        : `disabled, ${times}: once the partner has repaired it, ops webhooks enable`;
    case 'network_cut_off':
      return `the network of ${String(details['host'])} reaches nobody since ${String(details['since'])}: its way out, its name servers? No delivery spends a step`;
    case 'network_back':
      return `the network of ${String(details['host'])} reaches partners again; it reached nobody from ${String(details['since'])} to ${String(details['until'])}`;
    case 'workflows_lost':
      return 'workflows of deliveries are missing in Temporal, or cannot be continued: workers start them again; ops status counts those that wait for it';
    case 'notifications_expiring':
      return `${count} expire within 7 days: create or enable an endpoint`;
    case 'notifications_expired':
      return `${count} expired after 30 days`;
    case 'quote_crowded':
      return `more than 20 applications from ${String(details['service_quote_id'])}: a page that many shoppers see, or an integration at fault? ops applications list --quote`;
    case 'lender_contradiction': {
      const what = `${String(details['application_id'])}: ${String(details['to'])} reported after ${String(details['from'])}`;
      return `${what}, not applied and not sent; ask ${String(details['lender'])} which is true of ${String(details['lender_reference'])}`;
    }
    case 'lender_steps_missing': {
      const words = (value: unknown) => (Array.isArray(value) ? value.join(', ') : '');
      const where = `${String(details['application_id'])}: ${words(details['applied'])} applied to ${String(details['state_before'])}`;
      return `${where} without ${words(details['missing'])}; ask ${String(details['lender'])} about ${String(details['lender_reference'])}`;
    }
  }
}
