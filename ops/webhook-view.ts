import type { AttemptSummary } from '../db/notifications/read';
import type { EndpointWithHeld } from '../db/endpoints/figures';
import type { WebhookEndpoint } from '../db/endpoints/endpoints';
import type { SecretSummary } from '../db/endpoints/secrets';
import type { Answer } from './call';
import { attemptView, describeAttempt } from './notification-view';
import { facts, table } from './output';

const SHOWN_ONCE = 'This secret is shown once and cannot be read again: hand it over now.';

/** The only answer that holds a secret. */
export function secretAnswer(shown: { secret: string; said: string; view: object }): Answer {
  const { secret, said, view } = shown;
  return {
    json: { ...view, secret, notice: SHOWN_ONCE },
    text: `${said}\n\n  ${secret}\n\n${SHOWN_ONCE}`,
  };
}

export const endpointView = (endpoint: WebhookEndpoint) => ({
  endpoint_id: endpoint.endpointId,
  partner_id: endpoint.partnerId,
  environment: endpoint.environment,
  url: endpoint.url,
  state: endpoint.state,
  disabled_reason: endpoint.disabledReason,
  last_success_at: endpoint.lastSuccessAt,
  failing_since: endpoint.failingSince,
  failures_since_success: endpoint.failuresSinceSuccess,
  created_at: endpoint.createdAt,
  updated_at: endpoint.updatedAt,
});

/** `disabled (gone)`: why stands behind it. */
export const endpointStatus = ({ state, disabledReason }: WebhookEndpoint) =>
  state === 'disabled' && disabledReason !== null ? `disabled (${disabledReason})` : state;

/** What happens to held notifications once there is an endpoint. */
export const heldText = (held: number) =>
  held === 0 ? '' : `\n${held} held notifications are released now, in their sequence, by the workers.`;

/** Endpoints with their health, and what is held for them. */
export function endpointTable(endpoints: readonly EndpointWithHeld[]): Answer {
  const rows = endpoints.map((one) => [
    one.endpointId,
    one.partnerId,
    one.environment,
    endpointStatus(one),
    one.lastSuccessAt,
    one.failingSince,
    one.failuresSinceSuccess,
    one.held,
    one.url,
  ]);
  const health = ['last success', 'failing since', 'failures', 'held'];
  return {
    json: endpoints.map((one) => ({ ...endpointView(one), held: one.held })),
    text: table(['endpoint', 'partner', 'environment', 'state', ...health, 'URL'], rows),
  };
}

/** A secret without the secret itself. */
export const secretView = (secret: SecretSummary) => ({
  secret_id: secret.secretId,
  sealed_with: secret.keyId,
  signs: secret.live,
  created_at: secret.createdAt,
  expires_at: secret.expiresAt,
});

export function secretTable(secrets: readonly SecretSummary[]): string {
  const rows = secrets.map((one) => [one.secretId, one.live, one.expiresAt, one.createdAt, one.keyId]);
  return table(['secret', 'signs', 'until', 'created', 'sealed with'], rows);
}

/** An endpoint with what it is signed with and how it answered lately. */
export function endpointAnswer(
  endpoint: EndpointWithHeld,
  secrets: readonly SecretSummary[],
  attempts: readonly AttemptSummary[],
): Answer {
  const rows = attempts.map((one) => [
    one.notificationId,
    one.attemptNumber,
    one.startedAt,
    describeAttempt(one),
  ]);
  const view = { ...endpointView(endpoint), held: endpoint.held };
  return {
    json: {
      ...view,
      secrets: secrets.map(secretView),
      last_attempts: attempts.map((one) => ({ notification_id: one.notificationId, ...attemptView(one) })),
    },
    text: [
      facts(Object.entries(view)),
      '',
      'Secrets:',
      secretTable(secrets),
      '',
      'Last attempts:',
      table(['notification', 'attempt', 'started', 'came to'], rows),
    ].join('\n'),
  };
}
