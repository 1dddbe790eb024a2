import { request, type Dispatcher } from 'undici';

export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look into answers of every form
  readonly body: any;
  readonly text: string;
}

export interface CallOptions {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string | string[]>;
  /** Sent as it is when text or bytes, else as JSON. */
  readonly body?: unknown;
  /** Key to send; null sends none. Default: the caller's own. */
  readonly key?: string | null;
}

/** Makes one call. @param path where it leads unless `call` says otherwise. */
export async function callOver(
  where: {
    readonly origin: string;
    readonly path: string;
    readonly key: string;
    readonly dispatcher?: Dispatcher;
    readonly check: (
      call: { method: string; path: string },
      answer: Pick<Answer, 'status' | 'headers' | 'text'>,
    ) => void;
  },
  call: CallOptions,
): Promise<Answer> {
  const { method = 'POST', path = where.path, headers: more = {}, body, key = where.key } = call;
  const raw = typeof body === 'string' || body instanceof Uint8Array || body === undefined;
  const { statusCode, headers, ...rest } = await request(`${where.origin}${path}`, {
    method: method as 'POST',
    ...(where.dispatcher && { dispatcher: where.dispatcher }),
    headers: {
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...more,
    },
    body: raw ? ((body ?? null) as string | null) : JSON.stringify(body),
  });
  const text = await rest.body.text();
  where.check({ method, path }, { status: statusCode, headers, text });
  return { status: statusCode, headers, text, body: text === '' ? undefined : JSON.parse(text) };
}

/** Whether a GET is answered 2xx. */
export const answersOk = (url: string, timeoutMs = 60_000): Promise<boolean> =>
  fetch(url, { signal: AbortSignal.timeout(timeoutMs) }).then(
    ({ ok }) => ok,
    () => false,
  );

/** What an answer has that refuses a call. */
export const refusal = (status: number, code: string, details?: object) => ({
  status,
  body: { success: false, error: { code, ...(details && { details }) } },
});

/** A value of a page of metrics; NaN where there is none. @param name with its labels. */
export function metricIn(page: string, name: string): number {
  const line = page.split('\n').find((one) => one.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

/** Reads what the internal listener of a process serves about it. */
export function internalPages(internalPort: number) {
  const page = (path: string) => fetch(`http://127.0.0.1:${internalPort}${path}`);
  const metrics = async () => (await page('/metrics')).text();
  return {
    metrics,
    /** A value of its metrics, as `metricIn`. */
    metric: async (name: string) => metricIn(await metrics(), name),
    /** The status of `/ready`. */
    readyStatus: async () => (await page('/ready')).status,
  };
}
