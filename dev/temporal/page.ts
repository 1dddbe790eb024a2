import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { pipeline } from 'node:stream';
import { isForAnotherHost } from '../pages';

interface Place {
  readonly host: string;
  readonly port: number;
}

/**
 * Serves Temporal's page on 127.0.0.1 for `localhost` and that address alone: the page itself answers any `Host`, so a page of another
 * site whose name leads here (DNS rebinding) could start workflows.
 * @param target where the page listens
 * @throws when the port is taken
 */
export async function servePage(port: number, target: Place): Promise<{ close(): Promise<void> }> {
  const server = createServer((incoming, response) => {
    if (isForAnotherHost(incoming)) {
      response.writeHead(421, { 'content-type': 'text/plain' }).end('This host is not served here.\n');
      return;
    }
    const { method, url, headers } = incoming;
    const call = request({ ...target, method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      pipeline(answer, response, () => undefined);
    });
    call.on('error', () => {
      if (response.headersSent) response.destroy();
      else response.writeHead(502, { 'content-type': 'text/plain' }).end('Temporal does not answer.\n');
    });
    pipeline(incoming, call, () => undefined);
  });
  await once(server.listen(port, '127.0.0.1'), 'listening');
  return {
    close: async () => {
      if (!server.listening) return;
      const closed = once(server.close(), 'close');
      server.closeAllConnections();
      await closed;
    },
  };
}
