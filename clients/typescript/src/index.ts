export { createClient, type Client, type ClientOptions } from './client.js';
export type { CallOptions } from './http.js';
export { ApiError, type ErrorCode } from './api-error.js';
export {
  readWebhookKeys,
  verifyWebhook,
  WebhookVerificationError,
  type WebhookBody,
  type WebhookHeaders,
} from './verify-webhook.js';
export { createWebhookVerifier, type WebhookVerifier } from './webhook-verifier.js';
export type * from './types.js';
export type { components, operations, paths, webhooks } from './schema.js';
