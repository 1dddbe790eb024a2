import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { STORIES, type Story } from '../domain/application-states';
import { connectPartner, getJson } from './partner';
import { statusOf, type Delivery } from './shop/webhooks';
import type { StackInfo } from './stack/types';

/** There is no stack to show anything on; the message says what to do. */
export class NoStack extends Error {
  override readonly name = 'NoStack';
}

interface DemoOptions {
  readonly dataDir: string;
  readonly write: (text: string) => void;
}

const TOLD: readonly Story[] = ['referred_then_completed', 'refunded', 'declined'];
const ARRIVAL_MS = 90_000;

/**
 * Shows the whole way on the running stack: a quote, applications that the simulator opens from it, and what the partner's receiver
 * got of them.
 * @returns whether everything arrived at the demo's receiver, verified and in order; true for another receiver, which it cannot ask.
 * @throws NoStack when none runs there.
 */
export async function runDemo({ dataDir, write }: DemoOptions): Promise<boolean> {
  const info = await runningStack(dataDir);
  const { apiUrl, partnerId, apiKeys, receiverUrl } = info;
  const ca = await readFile(info.caFile, 'utf8');
  const partner = connectPartner({ apiUrl, ca, partnerId, apiKey: apiKeys.test });
  const { client } = partner;
  try {
    write('A checkout asks for a quote of £1,000.00 with a deposit of £100.00.\n');
    const quote = await client.quote({
      merchant_id: info.merchants[0]?.id ?? '',
      loan_amount: '1000.00',
      customer_deposit: '100.00',
      merchant_finance_url: `${info.shopUrl}/finance`,
      merchant_reference: `DEMO-${Date.now().toString(36)}`,
    });
    write(`  ${quote.service_quote_id}\n  summary  ${quote.summary.finance_offer_summary}\n`);
    const { url } = await client.getWebhookEndpoint();
    const ours = url?.startsWith(`${receiverUrl}/`) === true;
    let arrived = true;
    for (const [at, story] of TOLD.entries()) {
      const product = quote.products[at];
      const { credit_application_id: id } = await client.simulateApplication({
        service_quote_id: quote.service_quote_id,
        story,
        ...(product && { credit_product: product.credit_product }),
      });
      // The opening itself is the first.
      const count = STORIES[story].length + 1;
      write(`\n${id}, ${product?.credit_product ?? 'without a product'}: ${story}\n`);
      if (ours) arrived = (await showReceived(info, id, count, write)) && arrived;
      else write(`  1 to ${count} go to ${url ?? 'nobody: no endpoint is registered'}\n`);
    }
    const ending = arrived
      ? `All arrived, verified, in order. The same with every byte: ${info.shopUrl}/developer`
      : 'Not everything arrived verified and in order: see above.';
    const elsewhere = `The sandbox endpoint of ${partnerId} is not the demo's receiver. What was sent: GET ${apiUrl}/v1/notifications`;
    write(`\n${ours ? ending : elsewhere}\n`);
    if (info.temporalUiUrl !== null) write(`How each was delivered: ${info.temporalUiUrl}\n`);
    return arrived;
  } finally {
    await partner.close();
  }
}

/** What stack.json says of the stack that runs. @throws NoStack */
async function runningStack(dataDir: string): Promise<StackInfo> {
  const file = join(dataDir, 'stack.json');
  const advice =
    'Start it in another terminal with `npm start`, wait until it says that webhooks work, and run this again.';
  const text = await readFile(file, 'utf8').catch(() => null);
  if (text === null) throw new NoStack(`The stack is not running (there is no ${file}). ${advice}`);
  const info = JSON.parse(text) as StackInfo;
  if (info.temporalAddress === null)
    throw new NoStack(
      'Webhooks do not work yet, so none would arrive. Wait until `npm start` says that they do, or do what its warning says.',
    );
  await fetch(`${info.internalUrl}/health`).catch(() => {
    throw new NoStack(`The stack is not running (nobody answers at ${info.internalUrl}). ${advice}`);
  });
  return info;
}

/** Waits for an application's events. @returns whether the receiver got all of them, verified and in order. */
async function showReceived(
  { receiverUrl, caFile }: StackInfo,
  applicationId: string,
  count: number,
  write: (text: string) => void,
): Promise<boolean> {
  const until = Date.now() + ARRIVAL_MS;
  const look = async () => {
    const { deliveries } = await getJson<{ deliveries: Delivery[] }>(`${receiverUrl}/deliveries`, caFile);
    return deliveries.toReversed().filter((one) => statusOf(one)?.applicationId === applicationId);
  };
  let got = await look();
  while (new Set(got.map(({ eventId }) => eventId)).size < count && Date.now() < until) {
    await sleep(250);
    got = await look();
  }
  const sequences = got.map((one) => statusOf(one)?.sequence);
  for (const [at, { eventType, verified }] of got.entries())
    write(
      `  receiver got  ${String(sequences[at]).padStart(2)}  ${String(eventType).padEnd(38)} ${verified ? 'signature verified' : 'NOT VERIFIED'}\n`,
    );
  // An event may come twice: delivery is at least once.
  const inOrder = [...new Set(sequences)].every((sequence, at) => sequence === at + 1);
  if (inOrder && new Set(sequences).size === count) return got.every(({ verified }) => verified);
  write(`  expected 1 to ${count}, in this order\n`);
  return false;
}
