import { request as plainRequest, type IncomingMessage } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { json } from 'node:stream/consumers';

interface JsonCall {
  readonly url: string;
  /** Bearer key; none is sent without it. */
  readonly key?: string;
  /** Sent as JSON with POST; without it a GET, or what `method` says. */
  readonly body?: unknown;
  readonly method?: 'GET' | 'POST';
  /** Authority of the embedded stack, PEM. */
  readonly ca?: string;
}

/** Nobody answers there. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** A stack on one machine answers in milliseconds, a test notification within 10 s. */
const TIMEOUT_MS = 12_000;

/**
 * One call, as a partner or a lender's integration makes it.
 * @returns the answer's document.
 * @throws Unreachable; an Error with what was answered, when that is not 2xx.
 */
export async function callJson<T>(call: JsonCall): Promise<T> {
  const { status, answer } = await askJson(call);
  if (status < 200 || status > 299) {
    throw new Error(`${call.url} answered ${status}: ${JSON.stringify(answer)}`);
  }
  return answer as T;
}

/** The same, whatever the status. @throws Unreachable; an Error when the answer is no JSON. */
export async function askJson({
  url,
  key,
  body,
  ca,
  method,
}: JsonCall): Promise<{ status: number; answer: unknown }> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const request = (url.startsWith('https:') ? tlsRequest : plainRequest)(url, {
      method: method ?? (text === undefined ? 'GET' : 'POST'),
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(text !== undefined && { 'content-type': 'application/json' }),
      },
      ...(ca !== undefined && { ca }),
      timeout: TIMEOUT_MS,
    });
    request.on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MS / 1_000} s`)));
    request.on('error', (error) => reject(new Unreachable(`${url}: ${error.message}`)));
    request.on('response', resolve);
    request.end(text);
  });
  return { status: response.statusCode ?? 0, answer: await json(response) };
}

/** How a partner's own server reaches the API; the key never leaves it. */
export interface PartnerSettings {
  readonly apiUrl: string;
  /** Authority of the API's certificate, PEM. */
  readonly ca: string;
  readonly partnerId: string;
  readonly apiKey: string;
}

/** One call with the partner's key, whatever is answered. @throws Unreachable; an Error when the answer is no JSON. */
export function askPartnerApi(
  { apiUrl, ca, apiKey }: PartnerSettings,
  method: 'GET' | 'POST',
  path: string,
  body?: unknown,
): Promise<{ status: number; answer: unknown }> {
  return askJson({ method, url: `${apiUrl}${path}`, key: apiKey, ca, ...(body !== undefined && { body }) });
}

/** The same for what should go well. @returns `data` of the answer. @throws with the error's code and message. */
export async function dataOf<T>(asked: Promise<{ status: number; answer: unknown }>): Promise<T> {
  const { status, answer } = await asked;
  const { data, error } = answer as { data?: T; error?: { code: string; message: string } };
  if (data === undefined) throw new Error(error ? `${error.code}: ${error.message}` : `answered ${status}`);
  return data;
}
