import { signEd25519, hmacSha256 } from '../../outbound/sender';
import type { z } from 'zod';
import { ERROR_STATUSES } from '../../contracts/errors';
import { openApiDocument } from '../../scripts/openapi/document';
import * as examples from '../../scripts/openapi/examples';
import * as events from '../../scripts/openapi/partner-examples';
import * as recovery from '../../contracts/notification-recovery';
import * as notifications from '../../contracts/notifications';
import * as webhooks from '../../contracts/webhook-event';
import { generateWebhookSecret } from '../../db/endpoints/secrets';
import { signatureHeaders } from '../../domain/webhook';
import { generateKeyPair } from '../../db/endpoints/key-pairs';
import { quoteResponseSchema } from '../../contracts/quote-response';
import committed from '../../contracts/openapi.json';
import { useApi } from '../support/api';

const api = useApi();

test('the document is served without a key and is the committed one', async () => {
  const { status, body } = await api.get('/openapi.json', null);
  expect([status, body]).toEqual([200, committed]);
  expect(openApiDocument()).toEqual(committed);
});

test('every error code has an example under its own status', () => {
  type Responses = Record<string, { content: { 'application/json': { examples: object } } }>;
  const operations = Object.values(committed.paths).flatMap(
    (path) => Object.values(path) as { responses: Responses }[],
  );
  const documented = operations.flatMap(({ responses }) =>
    Object.entries(responses).flatMap(([status, response]) =>
      Object.keys(response.content['application/json'].examples).map((code) => `${status} ${code}`),
    ),
  );
  for (const [code, status] of Object.entries(ERROR_STATUSES))
    expect(documented).toContain(`${status} ${code}`);
});

test('the examples of answers and events fit the contract', () => {
  for (const [shown, schema] of [
    [examples.TEST_ENDED_EXAMPLES, notifications.testNotificationResponseSchema],
    [examples.TEST_PENDING_EXAMPLES, notifications.testNotificationResponseSchema],
    [examples.TEST_EVENT_EXAMPLES, webhooks.testEventSchema],
    [examples.APPLICATION_EVENT_EXAMPLES, webhooks.applicationEventSchema],
    [events.NOTIFICATION_LIST_EXAMPLES, notifications.notificationListSchema],
    [events.NOTIFICATION_EXAMPLES, notifications.notificationResponseSchema],
    [events.RESEND_EXAMPLES, notifications.resendResponseSchema],
    [events.RECOVER_DRY_RUN_EXAMPLES, recovery.recoverDryRunSchema],
    [events.RECOVER_EXAMPLES, recovery.recoverResponseSchema],
    [events.RECOVERY_EXAMPLES, recovery.recoveryResponseSchema],
    [events.PARTNER_APPLICATION_EXAMPLES, webhooks.partnerApplicationSchema],
    [events.WEBHOOK_KEYS_EXAMPLES, webhooks.webhookKeysSchema],
  ] as const) {
    for (const { value } of Object.values<{ value: unknown }>(shown))
      expect((schema as z.ZodObject).strict().parse(value)).toEqual(value);
  }
  expect(recovery.readRecoverRequest(events.RECOVER_REQUEST_EXAMPLES.outage.value)).toHaveProperty('value');
});

test('the headers of an event are as documented', () => {
  const secrets = [1, 2].map(() => generateWebhookSecret());
  const keyPairs = [1, 2, 3].map(generateKeyPair);
  const input = { body: '{}', eventId: 'evt_1', timestamp: 1_795_262_400, secrets, keyPairs };
  const signed = signatureHeaders({ ...input, hmac: hmacSha256, sign: signEd25519 });
  const headers: Record<string, string> = { ...signed, 'Service-Test': 'true' };
  for (const { name, schema } of committed.webhooks.testEvent.post.parameters) {
    const { pattern = '.', const: only } = schema as { pattern?: string; const?: string };
    expect(headers[name]).toMatch(new RegExp(pattern));
    if (only !== undefined) expect(headers[name]).toBe(only);
  }
});

test('the example request is answered like the example response', async () => {
  const { value: sent } = examples.QUOTE_REQUEST_EXAMPLES.basket;
  const { value: expected } = examples.QUOTE_RESPONSE_EXAMPLES.offers;
  const answer = await api.call({ body: sent });
  const text = answer.text.replaceAll(answer.body.data.service_quote_id, expected.data.service_quote_id);
  const received = JSON.parse(text);
  expect(quoteResponseSchema.parse(expected)).toEqual(expected);
  expect(received.data.summary).toEqual(expected.data.summary);
  expect(received.data.products[0]).toEqual(expected.data.products[0]);
});
