import { readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { z } from 'zod';
import { ApiError } from '../../clients/typescript/src/api-error';
import type { Quote } from '../../clients/typescript/src/types';
import { APPLICATION_STATES } from '../../domain/application-states';
import { formatPence, parsePence } from '../../domain/money';
import { isForAnotherHost, isFromElsewhere, type PageServer } from '../pages';
import { connectPartner, parseJson, type Call, type PartnerSettings } from '../partner';
import { RECEIVERS, watchWires } from '../receivers';
import { CHOICES } from './lender';
import { OutageStory } from './outage';
import {
  answerTo,
  behaviourSchema,
  eventTypeOf,
  shownHeaders,
  verifyWithKeysOf,
  type Behaviour,
  type Delivery,
} from './webhooks';

interface ShopOptions {
  /** On 127.0.0.1; 0 takes a free one. */
  readonly port: number;
  readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer };
  readonly partner: PartnerSettings;
  /** Whose events come here as well. */
  readonly liveKey: string;
  /** The first is that of the product page; the others are offered to developers. */
  readonly merchants: readonly { readonly id: string; readonly shows: string }[];
}

/** A merchant supplies its own; this one is an example of the kind. */
const DISCLOSURE =
  'Oak & Elm Furniture Ltd (a demonstration) is authorised and regulated by the Financial Conduct Authority as a credit broker, not ' +
  'a lender. Credit is provided by the lender of the example, subject to status and affordability, to UK residents aged 18 or over.';

/** Receivers that can be played, in words. */
const RECEIVED = Object.entries(RECEIVERS).map(([name, { does }]) => ({ name, does }));
const MOST_KEPT = 200;
/** Our events are at most 20 KB. */
const BODY_LIMIT_BYTES = 65_536;
/** Between the events of one decision: enough to watch them arrive. */
const STEP_MS = 300;
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const TYPES: Readonly<Record<string, string>> = {
  css: 'text/css',
  js: 'text/javascript',
  svg: 'image/svg+xml',
};
/** The pages, by path: the name of their files, and their title. */
const PAGES: Readonly<Record<string, readonly [name: string, title: string]>> = {
  '/': ['product', 'Alder three-seat sofa'],
  '/finance': ['finance', 'Pay monthly'],
  '/order': ['order', 'Your order'],
  '/developer': ['developer', 'For developers'],
};
const FOLDER = join(__dirname, 'page');
const read = (name: string) => readFileSync(join(FOLDER, name), 'utf8');

const basketSchema = z.object({
  merchant_id: z.string(),
  price: z.string().trim(),
  deposit: z.string().trim(),
});
const applySchema = z.object({ service_quote_id: z.string(), credit_product: z.string().optional() });
const eventsSchema = z.object({
  credit_application_id: z.string(),
  events: z.array(z.enum(APPLICATION_STATES)).min(1).max(12),
});
const idSchema = z.object({ id: z.string() });

/**
 * Starts the demo shop: pages for a shopper and one for developers, and behind them the partner's server, which alone knows the key.
 * It receives the partner's webhooks too, verifies and shows them, and misbehaves on request.
 */
export async function startShop(options: ShopOptions): Promise<PageServer> {
  const streams = new Set<ServerResponse>();
  const publish = (kind: string, value: unknown) => {
    for (const stream of streams) stream.write(`data: ${JSON.stringify({ kind, value })}\n\n`);
  };
  let calls: readonly Call[] = [];
  let deliveries: readonly Delivery[] = [];
  let behaviour: Behaviour = { mode: 'ok' };
  /** By id, for the finance page: a quote is not read again. */
  const quotes = new Map<string, Quote>();

  const own = connectPartner(options.partner, (call) => {
    calls = [call, ...calls].slice(0, MOST_KEPT);
    publish('calls', call);
  });
  const { client } = own;
  const live = connectPartner({ ...options.partner, apiKey: options.liveKey });
  const verify = verifyWithKeysOf([client, live.client]);
  const behave = (wanted: Behaviour) => {
    behaviour = wanted;
    publish('behaviour', wanted);
  };

  const story = new OutageStory({
    client,
    takeQuote: () => takeQuote(options.merchants[0]?.id ?? '', '1100.00', '100.00'),
    behave,
    deliveries: () => deliveries,
    tell: (told) => publish('story', told),
  });

  /**
   * Asks what finance to offer for a basket. Price and deposit are pounds as typed; what is no amount is sent as it is, so that the
   * API says what is wrong with it. The API takes the sum of loan and deposit as the price: a deposit that leaves no loan must not be
   * sent, or the offer would be for another price than the shop's.
   */
  async function takeQuote(merchantId: string, price: string, deposit: string): Promise<Quote> {
    const [total, paid] = [parsePence(price), parsePence(deposit === '' ? '0' : deposit)];
    const loanPence = total.ok && paid.ok ? total.pence - paid.pence : null;
    if (loanPence !== null && loanPence <= 0)
      throw new BasketFault('The deposit must be less than the price.');
    const quote = await client.quote({
      merchant_id: merchantId,
      loan_amount: loanPence === null ? price : formatPence(loanPence),
      customer_deposit: paid.ok ? formatPence(paid.pence) : deposit,
      merchant_finance_url: `${url}/finance`,
      merchant_reference: 'ALDER-SOFA-3',
    });
    quotes.set(quote.service_quote_id, quote);
    const [oldest] = quotes.keys();
    if (quotes.size > MOST_KEPT && oldest !== undefined) quotes.delete(oldest);
    return quote;
  }

  /** What a page may ask for by POST, with the body that it sends. */
  const orders: Readonly<Record<string, (body: unknown) => unknown>> = {
    '/quote': async (body) => {
      const { merchant_id: merchantId, price, deposit } = basketSchema.parse(body);
      return takeQuote(merchantId, price, deposit);
    },
    '/applications': (body) => {
      const { service_quote_id, credit_product } = applySchema.parse(body);
      return client.simulateApplication({ service_quote_id, ...(credit_product && { credit_product }) });
    },
    '/events': async (body) => {
      const { credit_application_id: id, events } = eventsSchema.parse(body);
      let application;
      for (const [at, status] of events.entries()) {
        if (at > 0) await sleep(STEP_MS);
        application = await client.simulateEvent(id, status);
        publish('application', application);
      }
      return application;
    },
    '/test-notification': () => client.sendTestNotification(),
    '/resend': (body) => client.resendNotification(idSchema.parse(body).id),
    '/story': () => {
      story.begin();
      return {};
    },
    '/behaviour': (body) => {
      behave(behaviourSchema.parse(body));
      return behaviour;
    },
  };

  /** What a page may look at. */
  const views: Readonly<Record<string, (id: string) => unknown>> = {
    '/setup': () => ({
      merchants: options.merchants,
      choices: CHOICES,
      disclosure: DISCLOSURE,
      receivers: RECEIVED,
    }),
    '/deliveries': () => ({ behaviour, deliveries }),
    '/quote': (id) => quotes.get(id) ?? null,
    '/application': (id) => client.getCreditApplication(id),
    '/endpoint': () => client.getWebhookEndpoint(),
    '/notifications': async () => {
      // One page of it, newest first.
      const newest = [];
      for await (const item of client.listNotifications({ limit: 25 })) if (newest.push(item) === 25) break;
      return newest;
    },
  };

  const app = Fastify({
    https: options.tls,
    bodyLimit: BODY_LIMIT_BYTES,
    keepAliveTimeout: 5_000,
    forceCloseConnections: true,
  });
  // A webhook is verified as the bytes that came.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  app.addHook('onRequest', async ({ raw }, reply) => {
    if (isForAnotherHost(raw)) return reply.code(421).send({ error: 'this host is not served here' });
    if (raw.method === 'POST' && isFromElsewhere(raw))
      return reply.code(403).send({ error: 'not from another site' });
    void reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
  });
  app.setErrorHandler(refuse);
  for (const [path, page] of Object.entries(PAGES))
    app.get(path, (_request, reply) =>
      reply
        .header('content-security-policy', POLICY)
        .type('text/html; charset=utf-8')
        .send(pageOf(...page).replace('<!-- docs -->', `${options.partner.apiUrl}/docs`)),
    );
  for (const name of readdirSync(FOLDER)) {
    const type = TYPES[name.split('.').at(-1) ?? ''];
    if (type !== undefined)
      app.get(`/${name}`, (_request, reply) => reply.type(`${type}; charset=utf-8`).send(read(name)));
  }
  for (const [path, view] of Object.entries(views))
    app.get<{ Querystring: { id?: string } }>(path, async ({ query }, reply) =>
      reply.type('application/json; charset=utf-8').send(JSON.stringify(await view(query.id ?? ''))),
    );
  for (const [path, order] of Object.entries(orders))
    app.post(path, async ({ body }) => (await order(parseJson(String(body)))) ?? {});
  app.get('/stream', (_request, reply) => {
    reply.hijack();
    openStream(reply.raw);
  });
  app.post('/webhooks', async ({ headers, body, raw }, reply) => {
    const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
    const why = await verify(headers, bytes);
    const { mode } = behaviour;
    const { answer, next } = answerTo(behaviour, why === undefined, wireOf(raw.socket as TLSSocket));
    if (next !== behaviour) behave(next);
    const text = bytes.toString();
    const id = headers['webhook-id'];
    const delivery: Delivery = {
      receivedAt: new Date().toISOString(),
      eventId: typeof id === 'string' ? id : null,
      eventType: eventTypeOf(text),
      verified: why === undefined,
      why: why ?? null,
      answered: answer,
      headers: shownHeaders(headers),
      body: text,
    };
    deliveries = [delivery, ...deliveries].slice(0, MOST_KEPT);
    publish('deliveries', delivery);
    // Such a receiver has written its answer itself.
    if (mode === 'receiver' || answer === null) return reply.hijack();
    return reply.code(answer).send({ verified: why === undefined });
  });

  /** Everything so far, then each thing as it happens. */
  function openStream(response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
    const now = { deliveries, calls, behaviour, story: story.state() };
    response.write(`data: ${JSON.stringify({ kind: 'now', value: now })}\n\n`);
    streams.add(response);
    response.once('close', () => streams.delete(response));
  }

  const wireOf = watchWires(app.server);
  await app.listen({ port: options.port, host: '127.0.0.1' });
  const url = `https://localhost:${(app.server.address() as AddressInfo).port}`;
  return {
    url,
    close: async () => {
      story.stop();
      await app.close();
      await Promise.all([own.close(), live.close()]);
    },
  };
}

const pageOf = (name: string, title: string) =>
  read('frame.html')
    .replace('<!-- title -->', title)
    .replace('/page.js', `/${name}.js`)
    .replace('<!-- main -->', read(`${name}.html`));

/** What is wrong with a basket before anything is asked, for the shopper. */
class BasketFault extends Error {
  override readonly name = 'BasketFault';
}

/** In the words of the API, where it has refused. */
function refuse(error: unknown, _request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof ApiError) {
    const { status, code, message, details } = error;
    return reply.code(status).send({ code, message, details });
  }
  if (error instanceof z.ZodError) {
    const message = error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`).join('; ');
    return reply.code(400).send({ message });
  }
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof BasketFault) return reply.code(400).send({ message });
  const { statusCode } = error as { statusCode?: number };
  if (statusCode !== undefined) return reply.code(statusCode).send({ message });
  return reply.code(502).send({ message: `The service could not be reached: ${message}` });
}
