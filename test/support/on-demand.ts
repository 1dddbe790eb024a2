import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Parts of a test run that few files need and that cost seconds: started in Jest's own process when the first file
 * asks, once for all of them. Test files live in other processes and ask over loopback.
 */
type Starters = Readonly<Record<string, () => Promise<object>>>;

const VARIABLE = 'PFQS_TEST_ON_DEMAND';

/** For globalSetup. @returns what ends the offer; what was started stays the starter's to end. */
export async function offerOnDemand(starters: Starters): Promise<() => Promise<void>> {
  const started = new Map<string, Promise<object>>();
  const server: Server = createServer((request, response) => {
    const name = request.url?.slice(1) ?? '';
    const starter = starters[name];
    if (!starter) {
      response.writeHead(404).end(`nobody offers ${name}`);
      return;
    }
    const result = started.get(name) ?? starter();
    started.set(name, result);
    result.then(
      (facts) => response.end(JSON.stringify(facts)),
      (error: Error) => response.writeHead(500).end(error.message),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  process.env[VARIABLE] = String((server.address() as AddressInfo).port);
  return async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await Promise.allSettled(started.values());
  };
}

/** For test files. @throws with the reason when the part cannot be had. */
export async function demand<Facts>(name: string): Promise<Facts> {
  const port = process.env[VARIABLE];
  if (!port) throw new Error(`${VARIABLE} is not set: this runs only under Jest (globalSetup).`);
  const { request } = await import('undici');
  const answer = await request(`http://127.0.0.1:${port}/${name}`, {
    // The first start on a machine may have to build the server.
    headersTimeout: 1_200_000,
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(text);
  return JSON.parse(text) as Facts;
}
