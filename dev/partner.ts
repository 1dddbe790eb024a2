import { readFile } from 'node:fs/promises';
import { Agent, fetch } from 'undici';
import { createClient, type Client } from '../clients/typescript/src/client';

/** How the demo partner's own server reaches the API; the key never leaves it. */
export interface PartnerSettings {
  readonly apiUrl: string;
  /** Authority of the API's certificate, PEM. */
  readonly ca: string;
  readonly partnerId: string;
  readonly apiKey: string;
}

/** A call of the API with its answer, as a developer wants to see it: without the key. */
export interface Call {
  readonly at: string;
  readonly method: string;
  readonly path: string;
  readonly request: unknown;
  readonly status: number;
  readonly tookMs: number;
  readonly requestId: string | null;
  /** Of the key in this minute. */
  readonly callsLeft: string | null;
  readonly answer: unknown;
}

/** A typed client that trusts the stack's own authority. @param onCall receives each call that was answered. */
export function connectPartner(
  { apiUrl, ca, partnerId, apiKey }: PartnerSettings,
  onCall: (call: Call) => void = () => undefined,
): { readonly client: Client; close(): Promise<void> } {
  const dispatcher = new Agent({ connect: { ca } });
  const client = createClient({
    baseUrl: apiUrl,
    apiKey,
    partnerId,
    fetch: async (request) => {
      const { method, url, signal } = request;
      const [began, at, body] = [performance.now(), new Date().toISOString(), await request.text()];
      const headers = Object.fromEntries(request.headers);
      const sent = { method, headers, signal, dispatcher, ...(body !== '' && { body }) };
      const answer = await fetch(url, sent);
      const text = await answer.text();
      const { pathname, search } = new URL(url);
      onCall({
        at,
        method,
        path: `${pathname}${search}`,
        request: parseJson(body),
        status: answer.status,
        tookMs: Math.round(performance.now() - began),
        requestId: answer.headers.get('x-request-id'),
        callsLeft: answer.headers.get('ratelimit-remaining'),
        answer: parseJson(text),
      });
      return new Response(text, { status: answer.status, headers: [...answer.headers] });
    },
  });
  return { client, close: () => dispatcher.close() };
}

/** `GET` of a document of the stack, trusting its authority. @throws TypeError when nobody answers there. */
export async function getJson<T>(url: string, caFile: string): Promise<T> {
  const dispatcher = new Agent({ connect: { ca: await readFile(caFile, 'utf8') } });
  try {
    return (await (await fetch(url, { dispatcher })).json()) as T;
  } finally {
    await dispatcher.close();
  }
}

/** @returns undefined for what is not JSON. */
export function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return undefined;
  }
}
