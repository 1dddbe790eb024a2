import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';

const status = z.coerce.number().int().min(200).max(599);

/** What the receiver does to the deliveries that come. */
export const behaviourSchema = z.discriminatedUnion('mode', [
  /** 200 to a verified delivery, 401 to another. */
  z.object({ mode: z.literal('ok') }),
  /** Always this status. */
  z.object({ mode: z.literal('status'), status: status.default(503) }),
  /** Takes the delivery and never answers. */
  z.object({ mode: z.literal('hang') }),
  /** This status `times` times, then `ok`. */
  z.object({
    mode: z.literal('fail-times'),
    status: status.default(503),
    times: z.coerce.number().int().min(1).max(1_000).default(3),
  }),
]);

export type Behaviour = z.infer<typeof behaviourSchema>;

/** What to answer; null: nothing, ever. */
export type Answer = number | null;

/** The answer to a delivery, and how the receiver behaves to the next one. */
export function answerTo(
  behaviour: Behaviour,
  verified: boolean,
): { readonly answer: Answer; readonly next: Behaviour } {
  const honest = verified ? 200 : 401;
  switch (behaviour.mode) {
    case 'ok':
      return { answer: honest, next: behaviour };
    case 'status':
      return { answer: behaviour.status, next: behaviour };
    case 'hang':
      return { answer: null, next: behaviour };
    case 'fail-times': {
      const times = behaviour.times - 1;
      return { answer: behaviour.status, next: times > 0 ? { ...behaviour, times } : { mode: 'ok' } };
    }
  }
}

/** In a few words, for the page. */
export function describeBehaviour(behaviour: Behaviour): string {
  switch (behaviour.mode) {
    case 'ok':
      return 'answers 200 to what it can verify, 401 to the rest';
    case 'status':
      return `answers ${behaviour.status} to everything`;
    case 'hang':
      return 'takes everything and never answers';
    case 'fail-times':
      return `answers ${behaviour.status} ${behaviour.times} more times, then 200`;
  }
}

/** A delivery as it came. */
export interface Delivery {
  readonly receivedAt: string;
  readonly eventId: string | null;
  readonly eventType: string | null;
  readonly verified: boolean;
  /** Why it could not be verified. */
  readonly why: string | null;
  /** Null: no answer was given. */
  readonly answered: Answer;
  /** Without credentials, signatures cut short. */
  readonly headers: Readonly<Record<string, string>>;
  /** Exactly as received. */
  readonly body: string;
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
  try {
    const { event_type: type } = JSON.parse(body) as { event_type?: unknown };
    return typeof type === 'string' ? type : null;
  } catch {
    return null;
  }
}
