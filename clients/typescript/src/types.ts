import type { components } from './schema.js';

type Schemas = components['schemas'];

/** What `POST /v1/finance-quote` answers in `data`. */
export type Quote = Schemas['QuoteResponse']['data'];
/** A representative example. */
export type Product = Schemas['Product'];
/** What `POST /v1/notifications/test` answers in `data`. */
export type TestNotification = Schemas['TestNotificationResponse']['data'];
/** The body of a webhook. Tell them apart by `event_type`; answer 2xx to one that you do not know. */
export type WebhookEvent = Schemas['CreditApplicationEvent'] | Schemas['TestEvent'];
