import type { AttemptSummary } from '../db/queries/notifications';
import type { WebhookEndpoint } from '../db/queries/webhook-endpoints';
import type { SecretSummary } from '../db/queries/webhook-secrets';
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
  created_at: endpoint.createdAt,
  updated_at: endpoint.updatedAt,
});

/** `disabled (gone)`: why stands behind it. */
export const endpointStatus = ({ state, disabledReason }: WebhookEndpoint) =>
  state === 'disabled' && disabledReason !== null ? `disabled (${disabledReason})` : state;

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
  endpoint: WebhookEndpoint,
  secrets: readonly SecretSummary[],
  attempts: readonly AttemptSummary[],
): Answer {
  const rows = attempts.map((one) => [
    one.notificationId,
    one.attemptNumber,
    one.startedAt,
    describeAttempt(one),
  ]);
  return {
    json: {
      ...endpointView(endpoint),
      secrets: secrets.map(secretView),
      last_attempts: attempts.map((one) => ({ notification_id: one.notificationId, ...attemptView(one) })),
    },
    text: [
      facts(Object.entries(endpointView(endpoint))),
      '',
      'Secrets:',
      secretTable(secrets),
      '',
      'Last attempts:',
      table(['notification', 'attempt', 'started', 'came to'], rows),
    ].join('\n'),
  };
}
