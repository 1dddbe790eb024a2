import { RECEIVERS, type Receiver } from '../../dev/receivers';
import { issueServiceKey } from '../../db/service-keys';
import type { Database } from '../../db/postgres/connect';
import { addShop } from '../support/merchants';
import { addEndpoint } from '../../testbed/notifications';
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
  /** Whether the first partners have receivers that misbehave on the wire. */
  readonly misbehaving?: boolean;
}

/** One for each of the first partners. None loses an event, and each accepts every event in the end. */
const MISBEHAVING: readonly (readonly [path: string, Receiver])[] = [
  ['/twice_2_ms', RECEIVERS.twice_2_ms],
  ['/no_content_body_later', RECEIVERS.no_content_body_later],
  ['/times_out_kept', RECEIVERS.times_out_kept],
  ['/alert_kept', RECEIVERS.alert_kept],
  ['/twice_half_ms', RECEIVERS.twice_half_ms],
  ['/junk_kept', RECEIVERS.junk_kept],
  ['/twice_at_once', RECEIVERS.twice_at_once],
  ['/resets_kept', RECEIVERS.resets_kept],
];

/** Null: as every other request is answered. */
export type PartnersAnswer = (
  received: Received,
) => { readonly status: number; readonly headers?: Record<string, string> } | null;

export async function openParties(
  database: Database,
  { partners: count, keyRing, at, answer, misbehaving = false }: PartiesOptions,
) {
  const answered: (number | null)[] = [];
  const onTheWire = new Map(misbehaving ? MISBEHAVING : []);
  const signatureFaults: string[] = [];
  const secretOf = new Map<string, string>();
  // One in forty is refused at first, one in forty takes its time.
  const receiver = await startWebhookReceiver((nth, received, wire) => {
    const fault = faultOf(received, [...secretOf.values()]);
    if (fault !== null) signatureFaults.push(fault);
    const misbehaves = onTheWire.get(received.path);
    if (misbehaves !== undefined) {
      answered[nth] = misbehaves.answer(wire);
      return null;
    }
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
    const path = [...onTheWire.keys()][number] ?? '/webhooks';
    const url = receiver.url.replace('/webhooks', path);
    const { secret } = await addEndpoint(database, { partnerId, url, keyRing });
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
    /** What each request at the receiver was answered, by its number, null without an answer; and what was wrong with its signature when it came. */
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
