import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { PartnerSettings } from '../calls';
import {
  isForAnotherHost,
  isFromElsewhere,
  parseJson,
  readBody,
  send,
  sendJson,
  servePages,
  type PageServer,
} from '../pages';
import {
  answerTo,
  type Behaviour,
  behaviourSchema,
  type Delivery,
  eventTypeOf,
  shownHeaders,
} from './deliveries';
import { renderPage } from './page';
import { openPartnerLog, OutageStory, type NotificationItem, type StoryParts } from './story';
import { whyNotVerified } from './verify';

export type { Delivery } from './deliveries';

export interface ReceiverOptions {
  /** On 127.0.0.1; 0 takes a free one. */
  readonly port: number;
  readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer };
  /** The live secrets of its endpoints, `whsec_…`; read anew for each delivery. */
  readonly secrets: () => readonly string[] | Promise<readonly string[]>;
  readonly now: () => Date;
  /** With the partner's key the page shows what the API says was sent; without it, what came alone. */
  readonly partner?: PartnerSettings;
  /** For the story "my receiver was down". */
  readonly moveApplication?: StoryParts['moveApplication'];
}

export interface RunningReceiver extends PageServer {
  /** Where webhooks go. */
  readonly webhookUrl: string;
  /** What has come, newest first. */
  deliveries(): readonly Delivery[];
}

const MOST_DELIVERIES = 200;
/** Our events are at most 20 KB. */
const BODY_LIMIT_BYTES = 65_536;
const SAFE_PAGE =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'";
/** Of this folder. The look is the shop's as well. */
const FILES: Readonly<Record<string, readonly [path: string, type: string]>> = {
  'GET /look.css': ['../look.css', 'text/css'],
  'GET /receiver.js': ['receiver.js', 'text/javascript'],
};

/** Starts the demo partner: an HTTPS endpoint that verifies what it gets, shows it, and misbehaves on request. */
export async function startReceiver(options: ReceiverOptions): Promise<RunningReceiver> {
  /** Newest first. */
  let deliveries: readonly Delivery[] = [];
  let behaviour: Behaviour = { mode: 'ok' };
  const log = options.partner && openPartnerLog(options.partner);
  const story =
    log &&
    options.moveApplication &&
    new OutageStory({
      log,
      moveApplication: options.moveApplication,
      behave: (wanted) => (behaviour = wanted),
      deliveries: () => deliveries,
      now: options.now,
    });
  let told = '';

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (isForAnotherHost(request)) return sendJson(response, 421, { error: 'this host is not served here' });
    const route = `${request.method} ${request.url}`;
    if (route === 'GET /') {
      response.setHeader('content-security-policy', SAFE_PAGE);
      const content = {
        behaviour,
        deliveries,
        log: await logNow(),
        story: story?.state() ?? null,
        told,
      };
      return send(response, 200, 'text/html', renderPage(content));
    }
    const file = FILES[route];
    if (file !== undefined) return send(response, 200, file[1], readFileSync(join(__dirname, file[0])));
    if (route === 'GET /deliveries') return sendJson(response, 200, { behaviour, deliveries });
    if (route === 'POST /webhooks') return receive(request, response);
    const order = orders[route];
    if (order === undefined) return sendJson(response, 404, { error: 'there is nothing here' });
    if (isFromElsewhere(request)) return sendJson(response, 403, { error: 'not from another site' });
    return order(request, response);
  }

  const orders: Readonly<Record<string, typeof receive>> = {
    'POST /behaviour': setBehaviour,
    ...(log && { 'POST /resend': resend }),
    ...(story && {
      'POST /story': async (_request, response) => {
        story.begin();
        seeOther(response);
      },
    }),
  };

  async function logNow(): Promise<readonly NotificationItem[] | string | null> {
    return log === undefined ? null : log.list().catch((error: unknown) => said(error));
  }

  async function resend(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBody(request, BODY_LIMIT_BYTES);
    if (bytes === undefined) return tooLarge(response);
    const id = new URLSearchParams(bytes.toString()).get('notification_id') ?? '';
    told = await (log?.resend(id) ?? Promise.resolve()).then(
      () => `${id} is sent again, with the same event id.`,
      (error: unknown) => said(error),
    );
    seeOther(response);
  }

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBody(request, BODY_LIMIT_BYTES);
    if (bytes === undefined) return tooLarge(response);
    const why = whyNotVerified(request.headers, bytes, await options.secrets(), options.now());
    const { answer, next } = answerTo(behaviour, why === undefined);
    behaviour = next;
    const body = bytes.toString();
    const id = request.headers['webhook-id'];
    const delivery: Delivery = {
      receivedAt: options.now().toISOString(),
      eventId: typeof id === 'string' ? id : null,
      eventType: eventTypeOf(body),
      verified: why === undefined,
      why: why ?? null,
      answered: answer,
      headers: shownHeaders(request.headers),
      body,
    };
    deliveries = [delivery, ...deliveries].slice(0, MOST_DELIVERIES);
    if (answer !== null) sendJson(response, answer, { verified: why === undefined });
  }

  async function setBehaviour(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const bytes = await readBody(request, BODY_LIMIT_BYTES);
    if (bytes === undefined) return tooLarge(response);
    const isForm = request.headers['content-type']?.startsWith('application/x-www-form-urlencoded') ?? false;
    const parsed = behaviourSchema.safeParse(
      isForm ? Object.fromEntries(new URLSearchParams(bytes.toString())) : parseJson(bytes.toString()),
    );
    if (!parsed.success) {
      const error = parsed.error.issues
        .map((issue) => `${issue.path.join('.')}: ${issue.message}`)
        .join('; ');
      return sendJson(response, 400, { error });
    }
    behaviour = parsed.data;
    if (!isForm) return sendJson(response, 200, behaviour);
    seeOther(response);
  }

  const server = await servePages(options, handle);
  return {
    url: server.url,
    webhookUrl: `${server.url}/webhooks`,
    deliveries: () => deliveries,
    close: async () => {
      story?.stop();
      await server.close();
    },
  };
}

const seeOther = (response: ServerResponse) => void response.writeHead(303, { location: '/' }).end();

const said = (error: unknown) => (error instanceof Error ? error.message : String(error));

function tooLarge(response: ServerResponse): void {
  sendJson(response, 413, { error: 'the body is too large' });
}
