export { createClient, type Client, type ClientOptions, type QuoteInput } from './client.js';
export { ApiError, type ErrorCode } from './api-error.js';
export { verifyWebhook, WebhookVerificationError, type WebhookHeaders } from './verify-webhook.js';
export type { Product, Quote, TestNotification, WebhookEvent } from './types.js';
export type { components, operations, paths, webhooks } from './schema.js';
