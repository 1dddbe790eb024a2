import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { StackInfo } from '../stack/types';
import type { Delivery } from '../receiver';
import { callJson } from '../calls';
import type { ApplicationState } from '../../domain/application-states';

/** The life of one application, as its lender tells it. */
export interface Story {
  readonly title: string;
  readonly lender: 'lender_a' | 'lender_b';
  /** Of the lender's own form, another one each time. */
  readonly newReference: (seed: number) => string;
  readonly statuses: readonly ApplicationState[];
}

/** Eight alphanumerics. */
const eight = (seed: number) => seed.toString(36).toUpperCase().padStart(8, 'A').slice(-8);
/** Seven digits. */
const seven = (seed: number) => String(seed % 10_000_000).padStart(7, '0');

/** Both lenders, a life that ends well, one that is refunded, and one that is declined. */
export const STORIES: readonly Story[] = [
  {
    title: 'referred, then accepted, and paid for',
    lender: 'lender_a',
    newReference: eight,
    statuses: [
      'submitted',
      'referred',
      'accepted',
      'deposit_paid',
      'signed',
      'ready',
      'activated',
      'paid_out',
      'completed',
    ],
  },
  {
    title: 'accepted at once, then sent back by the customer',
    lender: 'lender_b',
    newReference: seven,
    // This lender leaves steps out.
    statuses: ['submitted', 'accepted', 'signed', 'activated', 'partially_refunded', 'refunded'],
  },
  {
    title: 'declined',
    lender: 'lender_b',
    newReference: (seed) => seven(seed + 1),
    statuses: ['submitted', 'referred', 'declined'],
  },
];

/** A few events, for a partner who misses some. */
export const SHORT_STORY: Story = {
  title: 'accepted and signed',
  lender: 'lender_a',
  newReference: eight,
  statuses: ['submitted', 'accepted', 'signed'],
};

/** Where the demo runs. */
export interface DemoSurroundings {
  readonly info: StackInfo;
  readonly ca: string;
  /** Keys of the internal listener, one for each lender. */
  readonly serviceKeys: Readonly<Record<Story['lender'], string>>;
  /** What quotes call the lenders. */
  readonly lenderNames: ReadonlyMap<string, string>;
}

export interface DemoQuote {
  readonly quoteId: string;
  readonly summary: string;
  /** The link of the first product of a lender: its integration opens applications for no other. */
  readonly linkOf: (lender: Story['lender']) => string;
}

/** A delivery of a status, as the receiver got it. */
interface StatusDelivery {
  readonly applicationId: string;
  readonly sequence: number;
  readonly eventType: string;
  readonly verified: boolean;
  readonly reference: string | null;
}

/** Between a lender's events: enough to watch them arrive. */
const STEP_MS = 150;
const TIMEOUT_MS = 90_000;

/** Asks for a quote, as the demo partner's checkout does. */
export async function takeQuote(
  { info, ca, lenderNames }: DemoSurroundings,
  reference: string,
): Promise<DemoQuote> {
  const { data } = await callJson<{
    data: {
      service_quote_id: string;
      summary: { finance_offer_summary: string };
      products: { lender: string; merchant_finance_url: string }[];
    };
  }>({
    url: `${info.apiUrl}/v1/finance-quote`,
    key: info.apiKeys.test,
    ca,
    body: {
      merchant_id: info.merchants[0]?.id,
      partner_id: info.partnerId,
      loan_amount: '1000.00',
      customer_deposit: '100.00',
      merchant_finance_url: 'https://shop.example/finance',
      merchant_reference: reference,
    },
  });
  function linkOf(lender: Story['lender']): string {
    const product = data.products.find((one) => one.lender === lenderNames.get(lender));
    if (product === undefined) throw new Error(`the demo merchant has no product of ${lender} that fits`);
    return product.merchant_finance_url;
  }
  return { quoteId: data.service_quote_id, summary: data.summary.finance_offer_summary, linkOf };
}

/** Opens an application from a finance link, as a lender's integration does. @returns its id */
export async function openApplication(
  { info, serviceKeys }: DemoSurroundings,
  { lender, newReference }: Story,
  link: string,
  seed: number,
): Promise<string> {
  const { data } = await callJson<{ data: { credit_application_id: string } }>({
    url: `${info.internalUrl}/internal/v1/credit-applications`,
    key: serviceKeys[lender],
    body: { lender, lender_reference: newReference(seed), finance_link: link },
  });
  return data.credit_application_id;
}

/** Reports the lender's events, one after the other. */
export async function walk(
  { info, serviceKeys }: DemoSurroundings,
  applicationId: string,
  { lender, statuses }: Story,
): Promise<void> {
  for (const [at, status] of statuses.entries()) {
    await callJson({
      url: `${info.internalUrl}/internal/v1/credit-applications/${applicationId}/lender-events`,
      key: serviceKeys[lender],
      body: {
        lender_event_id: `demo-${applicationId}-${at}`,
        status,
        occurred_at: new Date().toISOString(),
      },
    });
    await sleep(STEP_MS);
  }
}

/** Waits until the receiver has `count` events of an application. @returns those that arrived, in the order of arrival */
export async function receivedOf(
  { info, ca }: DemoSurroundings,
  applicationId: string,
  count: number,
): Promise<StatusDelivery[]> {
  const until = Date.now() + TIMEOUT_MS;
  for (;;) {
    const { deliveries } = await callJson<{ deliveries: Delivery[] }>({
      url: new URL('/deliveries', info.receiverUrl).href,
      ca,
    });
    const own = deliveries
      .map(statusOf)
      .filter((one) => one?.applicationId === applicationId)
      .toReversed() as StatusDelivery[];
    if (new Set(own.map(({ sequence }) => sequence)).size >= count || Date.now() > until) return own;
    await sleep(250);
  }
}

/** What a status event names; the receiver lists whatever anybody posts to it. */
const statusEventSchema = z.object({
  sequence: z.number(),
  data: z.object({ credit_application_id: z.string(), merchant_reference: z.string().nullable() }),
});

function statusOf({ body, eventType, verified }: Delivery): StatusDelivery | null {
  if (eventType === null) return null;
  const event = statusEventSchema.safeParse(JSON.parse(body));
  if (!event.success) return null;
  const { sequence, data } = event.data;
  return {
    applicationId: data.credit_application_id,
    sequence,
    eventType,
    verified,
    reference: data.merchant_reference,
  };
}
