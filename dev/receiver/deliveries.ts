import type { IncomingHttpHeaders } from 'node:http';
import type { Answer } from './behaviour';

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

const MOST = 200;
const HIDDEN = new Set(['authorization', 'cookie', 'proxy-authorization']);
const CUT = new Set(['service-signature', 'webhook-signature']);

/** The last 200 deliveries, newest first. */
export class DeliveryList {
  #items: Delivery[] = [];

  add(delivery: Delivery): void {
    this.#items = [delivery, ...this.#items].slice(0, MOST);
  }

  all(): readonly Delivery[] {
    return this.#items;
  }
}

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
