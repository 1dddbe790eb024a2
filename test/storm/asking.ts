import { request, type Agent } from 'undici';

export interface Asked {
  /** To the listener of lender integrations. */
  readonly internal: boolean;
  readonly path: string;
  readonly key: string | null;
  readonly body: unknown;
}

/** An answer of the API, looked at for the envelope (I7). */
export interface StormAnswer {
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every form
  readonly body: any;
}

interface Way {
  readonly base: string;
  readonly agent?: Agent;
  /** Default: 20 s. */
  readonly timeoutMs?: number;
}

export type Asking = ReturnType<typeof openAsking>;

/** Calls of the API, and what they showed. */
export function openAsking() {
  const improperAnswers: string[] = [];
  const answers = { count: 0 };
  return {
    /** Answers without a request id or the envelope. */
    improperAnswers,
    answers,
    /** @returns null when no answer came. */
    ask: async (
      { path, key, body }: Asked,
      { base, agent, timeoutMs = 20_000 }: Way,
    ): Promise<StormAnswer | null> => {
      try {
        const answer = await request(`${base}${path}`, {
          method: 'POST',
          ...(agent && { dispatcher: agent }),
          headers: {
            'content-type': 'application/json',
            ...(key !== null && { authorization: `Bearer ${key}` }),
          },
          body: body === null ? null : JSON.stringify(body),
          headersTimeout: timeoutMs,
          bodyTimeout: timeoutMs,
        });
        const text = await answer.body.text();
        const document = JSON.parse(text) as { success?: unknown };
        answers.count += 1;
        if (answer.headers['x-request-id'] === undefined || typeof document.success !== 'boolean') {
          improperAnswers.push(`${path} ${answer.statusCode}: ${text}`);
        }
        return { status: answer.statusCode, body: document };
      } catch {
        return null;
      }
    },
  };
}
