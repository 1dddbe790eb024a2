import type { RecoverBody, RecoverDryRunBody, RecoveryBody } from '../../contracts/notification-recovery';
import type {
  NotificationBody,
  NotificationItem,
  NotificationListBody,
  ResendBody,
  TestNotificationBody,
} from '../../contracts/notifications';
import type {
  PartnerApplicationBody,
  WebhookEndpointBody,
  WebhookKeysBody,
} from '../../contracts/webhook-event';
import { answered, EVENT_EXAMPLES, QUOTE_EXAMPLES } from './examples';

const { value: event } = EVENT_EXAMPLES.CreditApplicationEvent.accepted;
const at = '2026-11-21T12:00:00.180Z';
const refused = { outcome: 'failed', http_status: 503, failure: 'http_status', duration_ms: 83 };
const notification: NotificationItem = {
  notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B9',
  event_id: event.event_id,
  event_type: event.event_type,
  status: 'retrying',
  reason: null,
  created_at: event.created_at,
  credit_application_id: event.data.credit_application_id,
  merchant_reference: event.data.merchant_reference,
  sequence: event.sequence,
  attempts: 1,
  last_attempt: { at, ...refused },
  next_attempt_at: '2026-11-21T12:00:05.900Z',
  delivered_at: null,
};

const { notification_id, event_id } = notification;
const recovery_id = 'rcv_01KAF1Z4Q0T6M5S7Y2W3X4V5BA';
const {
  status,
  previous_status,
  occurred_at,
  credit_product,
  loan_amount: _,
  customer_deposit: __,
  ...application
} = event.data;

const testNotification = (
  summary: string,
  status: TestNotificationBody['data']['status'],
  attempt: { readonly http_status: number | null; readonly duration_ms: number } | null,
) =>
  answered<TestNotificationBody>(summary, {
    notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B8',
    event_id: EVENT_EXAMPLES.TestEvent.standard.value.event_id,
    event_type: 'credit_application.test',
    environment: 'sandbox',
    status,
    reason: status === 'failed' ? 'gone' : null,
    attempt,
  });
const after = (duration_ms: number, http_status: number | null) => ({ http_status, duration_ms });

/** All examples of the document, by the component. A test holds them against the schemas. */
export const EXAMPLES = {
  ...QUOTE_EXAMPLES,
  ...EVENT_EXAMPLES,
  TestNotificationResponse: {
    delivered: testNotification('Your endpoint answered 2xx', 'delivered', after(83, 200)),
    failed: testNotification(
      'Your endpoint answered 410 and is disabled; no other attempt follows',
      'failed',
      after(41, 410),
    ),
    retrying: testNotification(
      'Your endpoint answered something else; two more attempts follow',
      'retrying',
      after(41, 500),
    ),
    unreachable: testNotification(
      'Your endpoint did not answer; two more attempts follow',
      'retrying',
      after(5_003, null),
    ),
    queued: testNotification('No attempt has ended yet', 'queued', null),
  },
  NotificationListResponse: {
    page: answered<NotificationListBody>('A page, and there is another', {
      notifications: [notification],
      next_cursor: 'MDFLQUYxWjRRMFQ2TTVTN1kyVzNYNFY1QjkSNFZ4mrzeD_FGpXqL0eM',
    }),
  },
  NotificationResponse: {
    retrying: answered<NotificationBody>('One that your endpoint has refused once', {
      ...notification,
      payload: JSON.stringify(event),
      attempt_log: [{ number: 1, at, finished_at: '2026-11-21T12:00:00.263Z', ...refused }],
    }),
  },
  ResendResponse: {
    resent: answered<ResendBody>('It is sent again', { notification_id, event_id, status: 'pending' }),
  },
  RecoverRequest: {
    outage: {
      summary: 'What was missed in an outage',
      value: { created_from: '2026-11-21T00:00:00Z', created_to: '2026-11-21T06:00:00Z', dry_run: true },
    },
  },
  RecoverDryRunResponse: {
    counted: answered<RecoverDryRunBody>('What would be sent again', { matched: 42 }),
  },
  RecoverResponse: {
    begun: answered<RecoverBody>('It has begun', { recovery_id, matched: 42 }),
  },
  RecoveryResponse: {
    delivering: answered<RecoveryBody>('All are sent again, and one is still being tried', {
      recovery_id,
      status: 'delivering',
      matched: 42,
      resent: 42,
      delivered: 41,
      failed: 0,
      created_at: '2026-11-21T12:00:00.000Z',
      finished_at: null,
    }),
  },
  CreditApplicationResponse: {
    accepted: answered<PartnerApplicationBody>('Two of its events', {
      ...application,
      status,
      credit_product,
      created_at: '2026-11-21T11:40:00.000Z',
      updated_at: '2026-11-21T12:00:00.120Z',
      events: [
        {
          sequence: 1,
          event_id: 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B7',
          notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B7',
          event_type: 'credit_application.created',
          status: 'created',
          previous_status: null,
          occurred_at: '2026-11-21T11:40:00.000Z',
        },
        {
          sequence: 3,
          event_id,
          notification_id: 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B9',
          event_type: 'credit_application.accepted',
          status,
          previous_status,
          occurred_at,
        },
      ],
    }),
  },
  SimulateApplicationRequest: {
    story: {
      summary: 'An application that is paid out',
      value: { service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6', story: 'completed' },
    },
  },
  SimulateEventRequest: {
    submitted: { summary: 'The shopper has applied', value: { status: 'submitted' } },
  },
  WebhookEndpointResponse: {
    failing: answered<WebhookEndpointBody>('One that fails', {
      state: 'active',
      url: 'https://hooks.partner.example/finance',
      disabled_at: null,
      disabled_reason: null,
      failing_since: '2026-11-21T12:00:00.120Z',
      last_success_at: '2026-11-21T11:58:03.400Z',
      held: 0,
    }),
  },
  WebhookKeysResponse: {
    one: answered<WebhookKeysBody>('The usual case', {
      keys: [
        {
          key_id: 'whk_01KAF1Z4Q0T6M5S7Y2W3X4V5BB',
          environment: 'sandbox',
          public_key: 'whpk_d4NQYR9dYD1xCI/Rq7l/u2wgIpJ5hGd9e3x/pPMYKAE=',
          not_after: null,
        },
      ],
    }),
    rotating: answered<WebhookKeysBody>('While one key is being changed for another', {
      keys: [
        {
          key_id: 'whk_01KAHMR8V0B2C4D6E8F0G2H4J6',
          environment: 'live',
          public_key: 'whpk_EyPofidU/xkBO9kFz0yRaeM20kp2oTZtvUmmWV4xEt4=',
          not_after: null,
        },
        {
          key_id: 'whk_01KAF1Z4Q0T6M5S7Y2W3X4V5BC',
          environment: 'live',
          public_key: 'whpk_y+S9PkAL/cs3EdOxI1NS6kpTTW1hidZkQR8C//nFF+w=',
          not_after: '2026-11-23T12:00:00.000Z',
        },
      ],
    }),
  },
};
