import { askJson } from './json-call';

/** How a partner's own server reaches the API; the key never leaves it. */
export interface PartnerSettings {
  readonly apiUrl: string;
  /** Authority of the API's certificate, PEM. */
  readonly ca: string;
  readonly partnerId: string;
  readonly apiKey: string;
}

/** One call with the partner's key, whatever is answered. @throws NobodyThere; an Error when the answer is no JSON. */
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
