import type { Agent } from 'undici';
import { callOver, type Answer } from '../support/http-call';

export interface Asked {
  /** To the listener of lender integrations. */
  readonly internal: boolean;
  readonly path: string;
  readonly key: string | null;
  readonly body: unknown;
}

/** An answer of the API, looked at for the envelope (I7). */
export type StormAnswer = Pick<Answer, 'status' | 'body'>;

interface Way {
  readonly origin: string;
  /** Its timeouts are those of the call. */
  readonly dispatcher: Agent;
}

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
    /** @returns null when no answer came. */
    ask: ({ path, key, body }: Asked, way: Way): Promise<StormAnswer | null> =>
      callOver({ ...way, path, key: '', check }, { key, ...(body !== null && { body }) }).catch(() => null),
  };
}
