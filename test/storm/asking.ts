import type { Agent } from 'undici';
import { goodQuote } from '../../testbed/values';
import { callOver, type Answer } from '../../testbed/http-call';
import type { StormPartner } from './parties';

export interface Asked {
  /** To the listener of lender integrations. */
  readonly internal: boolean;
  readonly path: string;
  readonly key: string;
  /** Null: the call has none. */
  readonly body: object | null;
}

/** A partner's call for a quote, with a good body changed by these fields. */
export const quoteOf = ({ partnerId, apiKey }: StormPartner, fields: object = {}): Asked => ({
  internal: false,
  path: '/v1/finance-quote',
  key: apiKey,
  body: { ...goodQuote, partner_id: partnerId, ...fields },
});

/** An answer of the API, looked at for the envelope (I7). */
export type StormAnswer = Pick<Answer, 'status' | 'body'>;

export type Asking = ReturnType<typeof openAsking>;

/** Calls of the API, and what they showed. */
export function openAsking() {
  const improperAnswers: string[] = [];
  const answers = { count: 0 };
  const check: Parameters<typeof callOver>[0]['check'] = ({ path }, { status, headers, text }) => {
    const document = JSON.parse(text) as { success?: unknown };
    answers.count += 1;
    if (headers['x-request-id'] === undefined || typeof document.success !== 'boolean')
      improperAnswers.push(`${path} ${status}: ${text}`);
  };
  return {
    /** Answers without a request id or the envelope. */
    improperAnswers,
    answers,
    /** @param way its timeouts are those of the call. @returns null when no answer came. */
    ask: (
      { path, key, body }: Asked,
      way: { readonly origin: string; readonly dispatcher: Agent },
    ): Promise<StormAnswer | null> =>
      callOver({ ...way, path, key, check }, body === null ? {} : { body }).catch(() => null),
  };
}
