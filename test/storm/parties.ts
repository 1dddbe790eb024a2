import { issueServiceKey } from '../../db/keys';
import type { Database } from '../../db/postgres/connect';
import { addShop } from '../support/merchants';
import { addEndpoint } from '../support/notifications';
import { addPartner } from '../support/partner-events';
import { startWebhookReceiver, verifySignatures, type Received } from '../support/webhook-receiver';

export interface StormPartner {
  readonly partnerId: string;
  readonly apiKey: string;
  readonly secret: string;
}

/** Those outside the service: partners with their endpoint, and a lender. */
export type Parties = Awaited<ReturnType<typeof openParties>>;

interface PartiesOptions {
  readonly partners: number;
  readonly keyRing: string;
  /** Of the receiver. Default: a free port of loopback. */
  readonly at?: { readonly host: string; readonly port: number };
  readonly answer?: PartnersAnswer;
}

/** Null: as every other request is answered. */
export type PartnersAnswer = (
  received: Received,
) => { readonly status: number; readonly headers?: Record<string, string> } | null;

export async function openParties(
  database: Database,
  { partners: count, keyRing, at, answer }: PartiesOptions,
) {
  const answered: number[] = [];
  const signatureFaults: string[] = [];
  const secretOf = new Map<string, string>();
  // One in forty is refused at first, one in forty takes its time.
  const receiver = await startWebhookReceiver((nth, received) => {
    const fault = faultOf(received, [...secretOf.values()]);
    if (fault !== null) signatureFaults.push(fault);
    const own = answer?.(received) ?? null;
    const status = own?.status ?? (nth % 40 === 7 ? 503 : 200);
    answered[nth] = status;
    if (own !== null) return own;
    if (nth % 40 !== 23) return status;
    return (response) => void setTimeout(() => response.writeHead(status).end(), 300);
  }, at);
  async function newPartner(number: number): Promise<StormPartner> {
    const partnerId = `P${200_001 + number}`;
    const { test: apiKey } = await addPartner(database, partnerId);
    const { secret } = await addEndpoint(database, { partnerId, url: receiver.url, keyRing });
    secretOf.set(partnerId, secret);
    return { partnerId, apiKey, secret };
  }
  const partners: StormPartner[] = [];
  while (partners.length < count) partners.push(await newPartner(partners.length));
  const tester = await newPartner(partners.length);
  await addShop(database);
  const { key: serviceKey } = await issueServiceKey(database.db, {
    name: 'Storm',
    lender: 'lender_a',
    environment: 'sandbox',
    expiresInSeconds: null,
  });
  return {
    receiver,
    partners,
    /** One more, which asks for test notifications. */
    tester,
    serviceKey,
    /** Everything that stands in no output and no history. */
    hidden: [keyRing, serviceKey, ...[...partners, tester].flatMap(({ apiKey, secret }) => [apiKey, secret])],
    /** What each request at the receiver was answered, by its number; and what was wrong with its signature when it came. */
    answered,
    signatureFaults,
  };
}

/** What is wrong with its signatures: of the endpoints that lead to one receiver each signs with a secret of its own, and one of them has to fit. */
export function faultOf(received: Received, secrets: readonly string[]): string | null {
  let fault = 'no secret';
  for (const secret of secrets) {
    try {
      verifySignatures(received, secret);
      return null;
    } catch (error) {
      fault = (error as Error).message;
    }
  }
  return `${received.eventId}: ${fault}`;
}
