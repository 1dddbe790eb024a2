import { once } from 'node:events';
import { cpSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { applicationEventText } from '../../contracts/webhook-event';
import { runProgram } from '../../dev/temporal/tools';
import { startTestApi, type TestApi } from '../support/api';
import { demand } from '../support/on-demand';
import { addEndpoint } from '../../testbed/notifications';
import { attempt, storeRow } from '../support/partner-events';
import { runDirectory } from '../../testbed/temporary-directory';
import type { TestTls } from '../../testbed/tls';

/** Generating and compiling on a busy machine; the Go client alone takes a minute of two cores when nothing of it is cached. */
const LIMIT_MS = 900_000;
const APPLICATION_ID = 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6';

/** Values that no client knows, in place of those that the API sends to the two calls below. */
const NEW_VALUES: Readonly<Record<string, string>> = {
  '"status":"failed"': '"status":"parked"',
  'credit_application.accepted': 'credit_application.parked',
  '"failure":"http_status"': '"failure":"meteor"',
  '\\"status\\":\\"accepted\\"': '\\"status\\":\\"parked\\"',
  '"code":"APPLICATION_NOT_FOUND"': '"code":"APPLICATION_PARKED"',
};
const ALTERED = /^\/v1\/(notifications\/ntf_|credit-applications\/)/;

interface Scene {
  readonly api: TestApi;
  readonly notificationId: string;
  readonly front: Server;
  /** For the client's program. */
  readonly environment: Readonly<Record<string, string>>;
  /** The document as this API serves it, below the address of the front. */
  readonly document: string;
}

/** An API with one notification of the partner, and a server in front that answers two calls with values of a later release. */
async function setScene(): Promise<Scene> {
  const tls = await demand<TestTls>('tls');
  const folder = runDirectory('clients');
  const agent = new Agent({ connect: { ca: tls.ca } });
  const front = createServer(tls).listen(0, '127.0.0.1');
  await once(front, 'listening');
  const address = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
  const api = await startTestApi({ environment: { PUBLIC_URL: address } });
  front.on('close', () => void agent.close());
  front.on('request', (incoming, outgoing) => {
    const url = incoming.url ?? '';
    const {
      host: _host,
      connection: _connection,
      'accept-encoding': _encoding,
      ...headers
    } = incoming.headers;
    const options = {
      dispatcher: agent,
      method: incoming.method as 'GET',
      headers: headers as Record<string, string>,
    };
    const body = incoming.method === 'GET' ? null : incoming;
    request(`https://127.0.0.1:${api.port}${url}`, { ...options, body }).then(
      async (answer) => {
        const text = await answer.body.text();
        const replaced = Object.entries(NEW_VALUES).reduce(
          (all, [ours, theirs]) => all.replaceAll(ours, theirs),
          text,
        );
        const { 'content-length': _length, connection: _kept, ...kept } = answer.headers;
        outgoing.writeHead(answer.statusCode, kept).end(ALTERED.test(url) ? replaced : text);
      },
      (error: Error) => outgoing.writeHead(502).end(error.message),
    );
  });

  const at = new Date('2026-11-21T12:00:00.120Z');
  const eventId = 'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B9';
  const body = applicationEventText({
    eventId,
    environment: 'sandbox',
    createdAt: at,
    sequence: 3,
    applicationId: APPLICATION_ID,
    quoteId: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
    merchantReference: null,
    merchantId: 'M000001',
    lender: 'lender_a',
    lenderReference: 'AB12CD34',
    status: 'accepted',
    previousStatus: 'submitted',
    loanPence: 90_000,
    depositPence: 10_000,
    occurredAt: at,
    creditProduct: null,
  });
  await addEndpoint(api.database, api);
  const stored = { partnerId: api.partnerId, applicationId: APPLICATION_ID, eventId, body, at: new Date() };
  const notificationId = await storeRow(api.database, { ...stored, state: 'started' });
  await attempt(api.database, notificationId, {
    kind: 'failed',
    failure: 'http_status',
    httpStatus: 503,
    durationMs: 83,
    retryAfterMs: null,
  });
  const caFile = join(folder, 'ca.pem');
  writeFileSync(caFile, tls.ca);
  const document = join(folder, 'openapi.json');
  writeFileSync(document, (await api.fetchText('/openapi.json')).text);
  return {
    api,
    notificationId,
    front,
    document,
    environment: {
      BASE_URL: address,
      CA_FILE: caFile,
      NODE_EXTRA_CA_CERTS: caFile,
      API_KEY: api.keys.test,
      PARTNER_ID: api.partnerId,
      NOTIFICATION_ID: notificationId,
      APPLICATION_ID,
    },
  };
}

type Run = (program: string, args: readonly string[], cwd?: string) => Promise<string>;

/** A client that a generator makes. */
interface GeneratedClient {
  /** Where its program is, below `programs/`, and the tests' name. */
  readonly name: string;
  /** False: it cannot read the body of a webhook. */
  readonly readsEvents?: false;
  /** Generates and compiles it in `folder`, which has the program. @returns the command of the program. */
  readonly make: (made: {
    readonly folder: string;
    readonly document: string;
    readonly run: Run;
  }) => Promise<readonly [string, ...string[]]>;
}

/** Defines the tests of a client, each on what its program saw. */
export function testClient({ name, readsEvents, make }: GeneratedClient): void {
  describe(name, () => {
    let scene: Scene;
    let saw: Record<string, unknown>;

    beforeAll(async () => {
      scene = await setScene();
      const folder = runDirectory('client');
      cpSync(join(__dirname, 'programs', name), folder, { recursive: true });
      const run: Run = (program, args, cwd = folder) =>
        runProgram(program, args, { cwd, timeoutMs: LIMIT_MS });
      const [command, ...args] = await make({ folder, document: scene.document, run });
      const variables = Object.entries(scene.environment).map((one) => one.join('='));
      const printed = await run('env', [...variables, command, ...args]);
      saw = JSON.parse(printed) as Record<string, unknown>;
    }, LIMIT_MS);
    afterAll(async () => {
      scene.front.close();
      scene.front.closeAllConnections();
      await scene.api.close();
    });

    test('gets a quote', () => {
      expect(saw['quote']).toEqual([true, '100.00']);
    });
    test('reads a list, with its nulls', () => {
      expect(saw['listed']).toEqual([scene.notificationId]);
    });
    test('has a typed error for a call that is refused', () => {
      expect(saw['refused']).toEqual([404, 'MERCHANT_NOT_FOUND', 'M999999']);
    });
    test('reads states, event types, reasons and codes that it does not know', () => {
      expect(saw['state']).toEqual(['parked', 'credit_application.parked', 'meteor']);
      expect(saw['code']).toEqual([404, 'APPLICATION_PARKED']);
      expect(saw['event']).toBe(readsEvents === false ? undefined : 'parked');
    });
  });
}
