import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import { createWebhookVerifier } from '../../clients/typescript/src/webhook-verifier';
import type { Client } from '../../clients/typescript/src/client';
import { parseJson } from '../partner';
import { RECEIVERS, type ReceiverName, type Wire } from '../receivers';

const status = z.coerce.number().int().min(200).max(599);

/** What the receiver does to the deliveries that come. */
export const behaviourSchema = z.discriminatedUnion('mode', [
  /** 200 to a verified delivery, 401 to another. */
  z.object({ mode: z.literal('ok') }),
  z.object({ mode: z.literal('status'), status: status.default(503) }),
  /** Takes the delivery and never answers. */
  z.object({ mode: z.literal('hang') }),
  /** This status `times` times, then `ok`. */
  z.object({
    mode: z.literal('fail-times'),
    status: status.default(503),
    times: z.coerce.number().int().min(1).max(1_000).default(3),
  }),
  /** As one of the receivers that are found outside. */
  z.object({ mode: z.literal('receiver'), receiver: z.enum(Object.keys(RECEIVERS) as ReceiverName[]) }),
]);

export type Behaviour = z.infer<typeof behaviourSchema>;

export interface Delivery {
  readonly receivedAt: string;
  readonly eventId: string | null;
  readonly eventType: string | null;
  readonly verified: boolean;
  /** Why it could not be verified. */
  readonly why: string | null;
  /** Null: no answer was given. */
  readonly answered: number | null;
  /** Without credentials, signatures cut short. */
  readonly headers: Readonly<Record<string, string>>;
  /** Exactly as received. */
  readonly body: string;
}

/** What is wrong with a delivery; undefined when it is ours. */
export type Verify = (headers: IncomingHttpHeaders, body: Buffer) => Promise<string | undefined>;

/** Verifies by the public keys that the service lists, one client for each environment, so that the receiver keeps no secret. */
export function verifyWithKeysOf(clients: readonly Pick<Client, 'listWebhookKeys'>[]): Verify {
  const verifiers = clients.map((client) => createWebhookVerifier(client));
  return async (headers, body) => {
    let why: string | undefined;
    for (const verifier of verifiers) {
      try {
        await verifier.verify(body, headers);
        return undefined;
      } catch (error) {
        why ??= error instanceof Error ? error.message : String(error);
      }
    }
    return why;
  };
}

/**
 * The answer to a delivery (null: none, ever), and how the receiver behaves to the next one. A receiver as they are found
 * outside has answered on the wire.
 */
export function answerTo(
  behaviour: Behaviour,
  verified: boolean,
  wire: Wire,
): { readonly answer: number | null; readonly next: Behaviour } {
  switch (behaviour.mode) {
    case 'ok':
      return { answer: verified ? 200 : 401, next: behaviour };
    case 'status':
      return { answer: behaviour.status, next: behaviour };
    case 'hang':
      return { answer: null, next: behaviour };
    case 'receiver':
      return { answer: RECEIVERS[behaviour.receiver].answer(wire), next: behaviour };
    case 'fail-times': {
      const times = behaviour.times - 1;
      return { answer: behaviour.status, next: times > 0 ? { ...behaviour, times } : { mode: 'ok' } };
    }
  }
}

const HIDDEN = new Set(['authorization', 'cookie', 'proxy-authorization']);
const CUT = new Set(['service-signature', 'webhook-signature']);

/** What may be shown of a request's headers. */
export function shownHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const shown = Object.entries(headers)
    .filter(([name]) => !HIDDEN.has(name))
    .map(([name, value]) => {
      const text = Array.isArray(value) ? value.join(', ') : (value ?? '');
      return [name, CUT.has(name) && text.length > 16 ? `${text.slice(0, 16)}…` : text] as const;
    });
  return Object.fromEntries(shown);
}

/** The type that a body names; null when it names none. */
export function eventTypeOf(body: string): string | null {
  const { event_type: type } = (parseJson(body) ?? {}) as { event_type?: unknown };
  return typeof type === 'string' ? type : null;
}

const statusEventSchema = z.object({
  sequence: z.number(),
  data: z.object({ credit_application_id: z.string() }),
});

/** Whose event it is and the how manieth; null for a test, and for whatever else anybody has posted. */
export function statusOf({ body }: Delivery): { applicationId: string; sequence: number } | null {
  const event = statusEventSchema.safeParse(parseJson(body));
  if (!event.success) return null;
  return { applicationId: event.data.data.credit_application_id, sequence: event.data.sequence };
}
