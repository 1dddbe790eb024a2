import type { components, operations, webhooks } from './schema.js';

type Schemas = components['schemas'];

/** What `POST /v1/finance-quote` answers in `data`. */
export type Quote = Schemas['QuoteResponse']['data'];
/** A representative example. */
export type Product = Schemas['Product'];
/** What `POST /v1/notifications/test` answers in `data`. */
export type TestNotification = Schemas['TestNotificationResponse']['data'];
/** The body of a webhook. Tell them apart by `event_type`; answer 2xx to one that you do not know. */
export type WebhookEvent = {
  [Name in keyof webhooks]: webhooks[Name]['post']['requestBody']['content']['application/json'];
}[keyof webhooks];

type WhenRead = 'payload' | 'attempt_log';
/** A notification in a list. */
export type NotificationSummary = Omit<Schemas['Notification'], WhenRead>;
/** A notification with its payload and every attempt. */
export type Notification = NotificationSummary & Required<Pick<Schemas['Notification'], WhenRead>>;
/** What `POST /v1/notifications/{notification_id}/resend` answers in `data`. */
export type Resend = Schemas['ResendResponse']['data'];
/** How far a recovery has come. */
export type Recovery = Schemas['RecoveryResponse']['data'];
/** A credit application with its events. */
export type CreditApplication = Schemas['CreditApplicationResponse']['data'];
/** A state that `simulateEvent` may report. */
export type ApplicationStatus = Schemas['SimulateEventRequest']['status'];
/** The quote of an application to simulate, one of its products, and a story to be recorded at once. */
export type Simulation = Schemas['SimulateApplicationRequest'];
export type WebhookEndpoint = Schemas['WebhookEndpointResponse']['data'];
/** A public key that webhooks are signed with. */
export type WebhookKey = Schemas['WebhookKeysResponse']['data']['keys'][number];

/** A quote request; the partner id is filled in. Send amounts as strings with two decimals. */
export type QuoteInput = Omit<Schemas['QuoteRequest'], 'partner_id'>;

type ListQuery = NonNullable<operations['listNotifications']['parameters']['query']>;

/** Which notifications to list; moments as Date or as RFC 3339 texts. */
export type NotificationFilter = Omit<ListQuery, 'cursor' | 'created_from' | 'created_to'> & Partial<Span>;

/** From one moment on, before another; as Date or as RFC 3339 texts. */
export interface Span {
  readonly created_from: Date | string;
  readonly created_to: Date | string;
}

export type TestLender = NonNullable<
  NonNullable<operations['sendTestNotification']['parameters']['query']>['lender']
>;
