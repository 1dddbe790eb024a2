import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';

const OUR_HOST = /^(?:localhost|127\.0\.0\.1)(?::\d+)?$/i;

/** Whether another site has made its name lead to this machine (DNS rebinding): that site's pages could read the answer. */
export const isForAnotherHost = ({ headers: { host } }: IncomingMessage): boolean =>
  !OUR_HOST.test(host ?? '');

/** Whether a page of another site has sent it, open in the same browser. Programs send no Origin. */
export const isFromElsewhere = ({ headers: { origin, host } }: IncomingMessage): boolean =>
  origin !== undefined && origin !== `https://${host}`;

export interface PageServer {
  readonly url: string;
  readonly server: Server;
  close(): Promise<void>;
}

/** Serves HTTPS on 127.0.0.1. @param options.port 0 takes a free one. */
export async function servePages(
  options: {
    readonly port: number;
    readonly tls: { readonly cert: string | Buffer; readonly key: string | Buffer };
  },
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<PageServer> {
  const server = createServer({ ...options.tls }, (request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  await once(server.listen(options.port, '127.0.0.1'), 'listening');
  return {
    url: `https://localhost:${(server.address() as AddressInfo).port}`,
    server,
    close: async () => {
      const closed = once(server.close(), 'close');
      // Those that are never answered included.
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Answers with what nothing keeps or takes for another type. */
export function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, {
    'content-type': `${type}; charset=utf-8`,
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(body);
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, 'application/json', `${JSON.stringify(body, null, 2)}\n`);
}

/** @returns undefined when the body is too large. */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= limitBytes) chunks.push(chunk);
  }
  return size > limitBytes ? undefined : Buffer.concat(chunks);
}
