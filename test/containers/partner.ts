import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { createAuthority, issueCertificate } from '../../runtime/certificates/issue';
import { startDnsServer } from '../support/dns-server';
import { RECEIVER_NAME, startWebhookReceiver, verifySignatures } from '../support/webhook-receiver';
import { startLoad } from './load';

/** Addresses of test/containers/engine.sh. */
export const MACHINE = { ipv4: '93.184.215.1', ipv6: '2001:db8:93::1', private: '10.0.0.5' } as const;
export const PARTNER = { ipv4: '93.184.215.14', ipv6: '2001:db8:93::14' } as const;
export const NAME = 'quotes.example.com';
const day = 86_400_000;
export const validity = { notBefore: new Date(Date.now() - day), notAfter: new Date(Date.now() + day) };

export interface Credentials {
  readonly key: string;
  readonly serviceKey: string;
}

/** Everybody outside: a shop, its endpoint and its name server; a lender's integration on another machine of the private network. */
export async function startOutside() {
  const authority = await createAuthority('Public authority', validity);
  const lenders = await createAuthority('Authority of lenders', validity);
  const lender = await issueCertificate(lenders, [{ type: 'dns', value: 'gateway' }], validity, [
    'clientAuth',
  ]);
  const names = await startDnsServer(
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
  const call = async (dispatcher: Agent, url: string, key: string, body: unknown) => {
    const answer = await request(url, {
      method: 'POST',
      dispatcher,
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
  const quote = (key: string, address: string) =>
    call(shop, `https://${address}/v1/finance-quote`, key, order);
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
      const { cert, key } = await issueCertificate(authority, [{ type: 'dns', value: NAME }], validity);
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
      const load = startLoad({
        url: `https://${MACHINE.ipv4}`,
        ca: authority.cert,
        servername: NAME,
        key,
        body: JSON.stringify(order),
        clients: 4,
      });
      const events: string[] = [];
      let stopping = false;
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
          events.push(id);
          await sleep(200);
        }
      })();
      return {
        answered: load.answered,
        async stop() {
          stopping = true;
          await lending;
          return { ...(await load.stop()), applications: events };
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
    async close() {
      await Promise.all([shop.close(), gateway.close(), receiver.close(), names.close()]);
    },
  };
}
export type Outside = Awaited<ReturnType<typeof startOutside>>;
