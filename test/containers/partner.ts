import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { startDnsServer } from '../support/dns-server';
import { VALID } from '../../testbed/tls';
import { RECEIVER_NAME, startWebhookReceiver, verifySignatures } from '../support/webhook-receiver';

/** Addresses of test/containers/engine.sh. */
export const MACHINE = { ipv4: '93.184.215.1', ipv6: '2001:db8:93::1', private: '10.0.0.5' } as const;
export const PARTNER = { ipv4: '93.184.215.14', ipv6: '2001:db8:93::14' } as const;
export const NAME = 'quotes.example.com';

export interface Credentials {
  readonly key: string;
  readonly serviceKey: string;
}

/** Everybody outside: a shop, its endpoint and its name server; a lender's integration on another machine of the private network. */
export async function startOutside() {
  const authority = await createAuthority('Public authority', VALID);
  const lenders = await createAuthority('Authority of lenders', VALID);
  const gatewayName = [{ type: 'dns', value: 'gateway' }] as const;
  const lender = await issueCertificate(lenders, gatewayName, VALID, ['clientAuth']);
  await startDnsServer(
    (name, type) => (type === 'A' && name.endsWith(RECEIVER_NAME) ? [PARTNER.ipv4] : { rcode: 3 }),
    { host: PARTNER.ipv4, port: 53 },
  );
  const receiver = await startWebhookReceiver(() => 200, { host: PARTNER.ipv4, port: 443 });
  const arrived = new Set<string>();
  let answerAfterMs = 0;
  let status = 200;
  const connect = { ca: authority.cert, servername: NAME };
  const shop = new Agent({ connect });
  const gateway = new Agent({ connect: { ...connect, ...lender } });
  const call = async (dispatcher: Agent, url: string, key: string, body: unknown, reset = false) => {
    const answer = await request(url, {
      method: 'POST',
      dispatcher,
      reset,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: body === null ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, body: JSON.parse(text || '{}') };
  };
  const order = {
    partner_id: 'P100001',
    merchant_id: 'M200001',
    loan_amount: '900.00',
    customer_deposit: '100.00',
    merchant_finance_url: 'https://shop.example/finance',
  };
  const quote = (key: string, address: string, agent = shop, reset = false) =>
    call(agent, `https://${address}/v1/finance-quote`, key, order, reset);
  /** Lenders repeat until they are answered. */
  const tell = async (path: string, key: string, body: unknown) => {
    for (let tries = 0; ; tries += 1) {
      const answer = await call(gateway, `https://${MACHINE.private}:8444${path}`, key, body).catch(
        (error: Error) => ({ status: 0, body: error.message }),
      );
      if (answer.status >= 200 && answer.status < 300) return answer.body;
      if (tries > 600 || (answer.status >= 400 && answer.status < 500))
        throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
      await sleep(300);
    }
  };

  return {
    authority,
    lenders,
    receiver,
    /** For the proxy: the chain and its key in one file. */
    async certificate(): Promise<string> {
      const { cert, key } = await issueCertificate(authority, [{ type: 'dns', value: NAME }], VALID);
      return cert + key;
    },
    quote,
    test: (key: string) => call(shop, `https://${MACHINE.ipv4}/v1/notifications/test`, key, null),
    /** As an integration on another machine, with a client certificate. */
    lenderCalls: (key: string, path: string, body: unknown) =>
      call(gateway, `https://${MACHINE.private}:8444${path}`, key, body),
    strangerCalls: (key: string, path: string, body: unknown) =>
      call(shop, `https://${MACHINE.private}:8444${path}`, key, body),
    /** Shoppers, and a lender's integration that opens applications and moves them on, until it is stopped. */
    traffic({ key, serviceKey }: Credentials) {
      const ids: string[] = [];
      const lost: string[] = [];
      let stopping = false;
      /** Quotes, as a partner sends them: over a connection that is kept, or each over a new one. Nothing is ever tried again. */
      const shopping = [false, true, false, true].map(async (reset) => {
        const agent = new Agent({ connect, connections: 1 });
        while (!stopping) {
          const startedAt = new Date().toISOString();
          const { status: code, body } = await quote(key, MACHINE.ipv4, agent, reset).catch(
            (error: unknown) => ({ status: 0, body: String(error) }),
          );
          if (code === 200) ids.push(body.data.service_quote_id);
          else lost.push(`${startedAt}: ${code} ${JSON.stringify(body)}`);
          // Two cores serve everything here: enough is under way without filling them.
          await sleep(250);
        }
        await agent.close();
      });
      const lending = (async () => {
        while (!stopping) {
          const quoted = await quote(key, MACHINE.ipv4).catch(() => undefined);
          if (quoted?.status !== 200) {
            await sleep(300);
            continue;
          }
          const link = String(quoted.body.data.products[0].merchant_finance_url);
          const reference = `R${randomUUID().slice(0, 7).toUpperCase()}`;
          const opened = await tell('/internal/v1/credit-applications', serviceKey, {
            lender: 'lender_a',
            lender_reference: reference,
            finance_link: link,
          });
          const id = String(opened.data.credit_application_id);
          for (const status of ['submitted', 'accepted']) {
            await tell(`/internal/v1/credit-applications/${id}/lender-events`, serviceKey, {
              lender_event_id: randomUUID(),
              status,
              occurred_at: new Date().toISOString(),
            });
          }
          await sleep(500);
        }
      })();
      return {
        /** @returns ids of quotes answered with 200, and every request that was not. */
        async stop() {
          stopping = true;
          await Promise.all([lending, ...shopping]);
          return { ids, lost };
        },
      };
    },
    /** From now on each notification is verified as it arrives. */
    trust(secret: string): void {
      receiver.behave((_nth, one) => {
        try {
          verifySignatures(one, secret);
          if (status === 200) arrived.add(one.eventId);
          return (response) => setTimeout(() => response.writeHead(status).end(), answerAfterMs);
        } catch {
          return 400;
        }
      });
    },
    answerAfter: (ms: number) => void (answerAfterMs = ms),
    answerWith: (code: 200 | 503) => void (status = code),
    /** Ids of events that arrived and were verified. */
    arrived,
  };
}
export type Outside = Awaited<ReturnType<typeof startOutside>>;
