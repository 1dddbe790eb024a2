import type { AttemptSummary } from '../db/notifications/operator';
import type { EndpointWithQueue, QueueFigures } from '../db/endpoints/attempts';
import type { WebhookEndpoint } from '../db/endpoints/endpoints';
import type { SecretSummary } from '../db/endpoints/secrets';

import { describeAttempt } from './notification-view';
import { age, facts, listed, snakeCased, withTables, type Answer } from './output';

const SHOWN_ONCE = 'This secret is shown once and cannot be read again: hand it over now.';

/** The only answer that holds a secret. */
export function secretAnswer(shown: { secret: string; said: string; view: object }): Answer {
  const { secret, said, view } = shown;
  return {
    json: { ...view, secret, notice: SHOWN_ONCE },
    text: `${said}\n\n  ${secret}\n\n${SHOWN_ONCE}`,
  };
}

/** `warnedHours` is the service's own note of what it has said. The last success is stored once a minute, so no seconds are shown. */
export function endpointView(endpoint: WebhookEndpoint) {
  const { warnedHours: _, lastSuccessAt, ...shown } = endpoint;
  const toTheMinute = lastSuccessAt === null ? null : `${lastSuccessAt.toISOString().slice(0, 16)}Z`;
  return { ...snakeCased(shown), last_success_at: toTheMinute };
}

/** `disabled (gone)`: why stands behind it. */
export const endpointStatus = ({ state, disabledReason }: WebhookEndpoint) =>
  state === 'disabled' && disabledReason !== null ? `disabled (${disabledReason})` : state;

/** What happens to held notifications once there is an endpoint. */
export const heldText = (held: number) =>
  held === 0 ? '' : `\n${held} held notifications are released now, in their sequence, by the workers.`;

/** With what waits for it, and since when the oldest of it. */
const queuedView = ({ queue: { pending, retrying, paused, held }, ...endpoint }: EndpointWithQueue) => ({
  ...endpointView(endpoint),
  pending: pending.count,
  pending_since: pending.since,
  retrying: retrying.count,
  retrying_since: retrying.since,
  paused: paused.count,
  paused_since: paused.since,
  held: held.count,
  held_since: held.since,
});

/** Endpoints with their health, and what waits for them. @param at now. */
export function endpointTable(endpoints: readonly EndpointWithQueue[], at: Date): Answer {
  const waiting = (what: keyof QueueFigures) => (one: EndpointWithQueue) => {
    const { count, since } = one.queue[what];
    return since === null ? count : `${count}, ${age(since, at)}`;
  };
  return listed(endpoints, queuedView, {
    partner: 'partner_id',
    environment: 'environment',
    state: endpointStatus,
    failing: ({ failingSince, failuresSinceSuccess }) =>
      failingSince === null ? null : `${failuresSinceSuccess}, ${age(failingSince, at)}`,
    pending: waiting('pending'),
    retrying: waiting('retrying'),
    paused: waiting('paused'),
    held: waiting('held'),
    endpoint: 'endpoint_id',
    'last success': 'last_success_at',
    URL: 'url',
  });
}

/** A secret without the secret itself: what is shown is named one by one. */
export const secretView = (secret: SecretSummary) => ({
  secret_id: secret.secretId,
  sealed_with: secret.keyId,
  signs: secret.live,
  created_at: secret.createdAt,
  expires_at: secret.expiresAt,
});

export const secretTable = (secrets: readonly SecretSummary[]) =>
  listed(secrets, secretView, {
    secret: 'secret_id',
    signs: 'signs',
    until: 'expires_at',
    created: 'created_at',
    'sealed with': 'sealed_with',
  });

/** An endpoint with what it is signed with and how it answered lately. */
export function endpointAnswer(
  endpoint: EndpointWithQueue,
  secrets: readonly SecretSummary[],
  {
    underWay,
    ended,
  }: { readonly underWay: readonly AttemptSummary[]; readonly ended: readonly AttemptSummary[] },
): Answer {
  const known = secretTable(secrets);
  const tried = listed([...underWay, ...ended], snakeCased, {
    notification: 'notification_id',
    attempt: 'attempt_number',
    started: 'started_at',
    'came to': describeAttempt,
  });
  const view = { ...queuedView(endpoint), attempts_under_way: underWay.length };
  return {
    json: {
      ...view,
      secrets: known.json,
      last_attempts: tried.json,
    },
    ...withTables((textOf) =>
      [facts(Object.entries(view)), '', 'Secrets:', textOf(known), '', 'Last attempts:', textOf(tried)].join(
        '\n',
      ),
    ),
  };
}
