// A quote, a list, refusals with their typed errors, and values that this client does not know. Prints what it saw.
import createClient from 'openapi-fetch';
import type { components, paths, webhooks } from './schema';

declare const process: { readonly env: Record<string, string> };
const { env } = process;
const api = createClient<paths>({
  baseUrl: env['BASE_URL'],
  headers: { Authorization: `Bearer ${env['API_KEY']}` },
});
type Event = webhooks['creditApplicationEvent']['post']['requestBody']['content']['application/json'];

const quote = (merchant_id: string) => {
  const amounts = { loan_amount: '900.00', customer_deposit: '100.00' };
  const body = {
    merchant_id,
    partner_id: env['PARTNER_ID']!,
    ...amounts,
    merchant_finance_url: 'https://shop.example/finance',
  };
  return api.POST('/v1/finance-quote', { body });
};
const { data: got } = await quote('M000001');
const { error, response } = await quote('M999999');
const { data: page } = await api.GET('/v1/notifications', { params: { query: { limit: 5 } } });
const byId = { params: { path: { notification_id: env['NOTIFICATION_ID']! } } };
const { data: read } = await api.GET('/v1/notifications/{notification_id}', byId);
const application = { params: { path: { credit_application_id: env['APPLICATION_ID']! } } };
const hidden = await api.GET('/v1/credit-applications/{credit_application_id}', application);
const one: components['schemas']['Notification'] = read!.data;
const event = JSON.parse(one.payload!) as Event;
console.log(
  JSON.stringify({
    quote: [got!.data.summary.display, got!.data.products[0]!.customer_deposit],
    listed: page!.data.notifications.map((item) => item.notification_id),
    refused: [response.status, error!.error.code, error!.error.details!.merchant_id],
    state: [one.status, one.event_type, one.attempt_log![0]!.failure],
    code: [hidden.response.status, hidden.error!.error.code],
    event: event.data.status,
  }),
);
