import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { z } from 'zod';
import { formatPence, parsePence } from '../../domain/money';
import { TEST_MERCHANTS } from '../../domain/test-merchants';
import { askPartnerApi, type PartnerSettings } from '../calls';
import { isFromElsewhere, parseJson, readBody, send, sendJson, servePages, type PageServer } from '../pages';
import type { Delivery } from '../receiver';

interface ShopOptions {
  /** On 127.0.0.1; 0 takes a free one. */
  readonly port: number;
  readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer };
  readonly partner: PartnerSettings;
  readonly merchants: readonly { readonly id: string; readonly shows: string }[];
  /** Address of the partner's own page, for a link. */
  readonly partnerPage: string;
  /** What the partner's receiver got, newest first. */
  readonly deliveries: () => readonly Delivery[];
  /** Walks an application through its life. @returns a sentence for the page. */
  readonly runDemoApplication: () => Promise<string>;
}

/** A merchant supplies its own; this one is an example of the kind. */
const DISCLOSURE =
  'Demo Shop Ltd is authorised and regulated by the Financial Conduct Authority as a credit broker, not a lender. Credit is ' +
  'subject to status, affordability and age. Representative examples are shown for illustration.';

const BODY_LIMIT_BYTES = 4_096;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const FILES: Readonly<Record<string, readonly [path: string, type: string]>> = {
  '/': ['page/index.html', 'text/html'],
  // One look for the shop and the partner's page.
  '/look.css': ['../look.css', 'text/css'],
  '/shop.js': ['page/shop.js', 'text/javascript'],
  '/offer.js': ['page/offer.js', 'text/javascript'],
};

const basketSchema = z.object({
  merchant_id: z.string(),
  price: z.string().trim(),
  deposit: z.string().trim(),
});

/** Starts the demo shop: one page, and the partner's server behind it, which alone knows the key. */
export async function startShop(options: ShopOptions): Promise<PageServer> {
  const { partner } = options;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const file = request.method === 'GET' ? FILES[request.url ?? ''] : undefined;
    if (file !== undefined) {
      response.setHeader('content-security-policy', POLICY);
      return send(response, 200, file[1], readFileSync(join(__dirname, file[0])));
    }
    switch (`${request.method} ${request.url}`) {
      case 'GET /merchants':
        return sendJson(response, 200, {
          merchants: options.merchants,
          situations: situations(),
          partner_page: options.partnerPage,
        });
      case 'GET /inbox':
        return sendJson(response, 200, options.deliveries());
      case 'POST /quote':
      case 'POST /test-notification':
      case 'POST /demo-application':
        return act(request, response);
      default:
        return sendJson(response, 404, { error: 'there is nothing here' });
    }
  }

  async function act(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (isFromElsewhere(request)) return sendJson(response, 403, { error: 'not from another site' });
    if (request.url === '/test-notification') {
      const { answer } = await sendTestNotification(partner);
      return sendJson(response, 200, { said: wordsFor(answer) });
    }
    if (request.url === '/demo-application') {
      return sendJson(response, 200, { said: await options.runDemoApplication() });
    }
    const basket = basketSchema.safeParse(parseJson((await readBody(request, BODY_LIMIT_BYTES))?.toString()));
    if (!basket.success)
      return sendJson(response, 400, { error: 'a basket is merchant_id, price and deposit' });
    const { merchant_id: merchantId, price, deposit } = basket.data;
    const exchange = await askForQuote(partner, { merchantId, price, deposit });
    return sendJson(response, 200, { ...exchange, disclosure: DISCLOSURE });
  }

  return servePages(options, (request, response) =>
    handle(request, response).catch((error: unknown) => {
      if (response.headersSent) throw error;
      sendJson(response, 502, {
        said: `The service could not be reached: ${error instanceof Error ? error.message : String(error)}`,
      });
    }),
  );
}

function situations(): { id: string; shows: string }[] {
  return [...TEST_MERCHANTS.entries()].map(([id, { shows }]) => ({ id, shows }));
}

/** What became of a test notification, for people. */
function wordsFor(answer: unknown): string {
  const { data, error } = (answer ?? {}) as {
    data?: { status: string; event_id: string };
    error?: { code: string; message: string };
  };
  if (error !== undefined) return `${error.code}: ${error.message}`;
  return data === undefined ? 'The service gave no answer.' : `${data.event_id}: ${data.status}.`;
}

interface Exchange {
  /** Null: nothing was asked. */
  readonly request: unknown;
  /** HTTP status. */
  readonly status: number | null;
  readonly answer: unknown;
  /** What is wrong with the basket, for the shopper. */
  readonly fault?: string;
}

/**
 * Asks what finance to offer for a basket. Price and deposit are pounds as typed; what is no amount is sent as it is, so that
 * the API says what is wrong with it. The API takes the sum of loan and deposit as the price: a deposit that leaves no loan must
 * not be sent, or the offer would be for another price than the shop's.
 */
async function askForQuote(
  settings: PartnerSettings,
  basket: { readonly merchantId: string; readonly price: string; readonly deposit: string },
): Promise<Exchange> {
  const price = parsePence(basket.price);
  const deposit = parsePence(basket.deposit === '' ? '0' : basket.deposit);
  const loanPence = price.ok && deposit.ok ? price.pence - deposit.pence : null;
  if (loanPence !== null && loanPence <= 0)
    return { request: null, status: null, answer: null, fault: 'The deposit must be less than the price.' };
  const body = {
    merchant_id: basket.merchantId,
    partner_id: settings.partnerId,
    loan_amount: loanPence === null ? basket.price : formatPence(loanPence),
    customer_deposit: deposit.ok ? formatPence(deposit.pence) : basket.deposit,
    merchant_finance_url: 'https://shop.example/finance',
    merchant_reference: 'SOFA-1',
  };
  const { status, answer } = await askPartnerApi(settings, 'POST', '/v1/finance-quote', body);
  return { request: body, status, answer };
}

/** `POST /v1/notifications/test`. */
async function sendTestNotification(settings: PartnerSettings): Promise<Exchange> {
  const { status, answer } = await askPartnerApi(settings, 'POST', '/v1/notifications/test');
  return { request: null, status, answer };
}
