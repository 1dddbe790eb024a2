import { request as plainRequest } from 'node:http';
import { request as tlsRequest } from 'node:https';

export interface DemoCall {
  readonly url: string;
  /** Bearer key; none is sent without it. */
  readonly key?: string;
  /** Sent as JSON with POST; without it a GET. */
  readonly body?: unknown;
  /** Authority of the embedded stack, PEM. */
  readonly ca?: string;
}

/** Nobody answers there. */
export class NobodyThere extends Error {
  override readonly name = 'NobodyThere';
}

/** A stack on one machine answers in milliseconds. */
const TIMEOUT_MS = 10_000;

/**
 * One call, as a partner or a lender's integration makes it.
 * @returns the answer's document.
 * @throws NobodyThere; an Error with what was answered, when that is not 2xx.
 */
export async function callJson<T>({ url, key, body, ca }: DemoCall): Promise<T> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const request = (url.startsWith('https:') ? tlsRequest : plainRequest)(url, {
      method: text === undefined ? 'GET' : 'POST',
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(text !== undefined && { 'content-type': 'application/json' }),
      },
      ...(ca !== undefined && { ca }),
      timeout: TIMEOUT_MS,
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)));
    request.on('error', (error) => reject(new NobodyThere(`${url}: ${error.message}`)));
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    request.end(text);
  });
  if (answer.status < 200 || answer.status > 299) {
    throw new Error(`${url} answered ${answer.status}: ${answer.text}`);
  }
  return JSON.parse(answer.text) as T;
}
