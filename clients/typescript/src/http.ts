import { ApiError } from './api-error.js';
import { createPace } from './pace.js';
import { retryAfterMs, sleep } from './retry.js';

export interface HttpOptions {
  readonly baseUrl: string;
  readonly apiKey: string;
  /** Most repetitions of a call. */
  readonly retries: number;
  readonly fetch: ((request: Request) => Promise<Response>) | undefined;
}

/** What every method takes. */
export interface CallOptions {
  /** Sent as `X-Request-Id`, 1 to 128 visible ASCII characters. */
  readonly requestId?: string;
  /** Ends the call, its waits and its repetitions. */
  readonly signal?: AbortSignal;
}

export interface Call extends CallOptions {
  readonly method: 'GET' | 'POST';
  /** From `/v1` on, ids encoded. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: object;
  /** Longest wait for one answer, in milliseconds. */
  readonly attemptMs: number;
  /** Longest time in all: a wait that does not fit in is not begun. */
  readonly totalMs: number;
  /** Whether doing it twice does no harm. */
  readonly repeatable: boolean;
  /** Whether it can wait for others that use the same key. */
  readonly canWait: boolean;
}

/** Makes calls under one key. @throws ApiError for what the service refuses; errors of fetch when it cannot be reached in time. */
export function createHttp({ baseUrl, apiKey, retries, fetch }: HttpOptions) {
  const pace = createPace();
  const origin = baseUrl.replace(/\/+$/, '');

  async function attempt(call: Call, timeoutMs: number): Promise<unknown> {
    const { method, path, query = {}, body, requestId, signal } = call;
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query))
      if (value !== undefined) search.set(name, String(value));
    const end = endOf(timeoutMs, signal);
    try {
      const url = `${origin}${path}${search.size > 0 ? `?${search}` : ''}`;
      const init = {
        method,
        headers: {
          Authorization: `Bearer ${apiKey}`,
          ...(body !== undefined && { 'Content-Type': 'application/json' }),
          ...(requestId !== undefined && { 'X-Request-Id': requestId }),
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        // The key goes nowhere else.
        redirect: 'manual',
        signal: end.signal,
      } as const;
      // Next.js answers equal reads of a page alike, so that a repetition gets the failure again, unless it sees a signal here.
      const response = await (fetch ? fetch(new Request(url, init)) : globalThis.fetch(url, init));
      pace.observe(response.headers, performance.now());
      const answer = parsed(await response.text()) as { success?: unknown; data?: unknown } | null;
      if (!response.ok || answer?.success !== true) throw new ApiError(response, answer);
      return answer.data;
    } finally {
      end.forget();
    }
  }

  return async function send<T>(call: Call): Promise<T> {
    const { attemptMs, totalMs, repeatable, canWait, signal } = call;
    const paceMs = pace.waitMs(performance.now());
    if (canWait && paceMs > 0) await sleep(paceMs, signal);
    const endMs = performance.now() + totalMs;
    for (let tried = 1; ; tried += 1) {
      try {
        const leftMs = Math.ceil(endMs - performance.now());
        return (await attempt(call, Math.min(attemptMs, Math.max(leftMs, 1)))) as T;
      } catch (error) {
        const waitMs = signal?.aborted ? null : retryAfterMs(error, tried, repeatable);
        if (waitMs === null || tried > retries || performance.now() + waitMs >= endMs) throw error;
        await sleep(waitMs, signal);
      }
    }
  };
}

/** Aborts in time, or with the caller's signal. `AbortSignal.any` is not in every edge runtime. */
function endOf(timeoutMs: number, signal?: AbortSignal) {
  const controller = new AbortController();
  const timeout = AbortSignal.timeout(timeoutMs);
  const stop = () => controller.abort(signal?.aborted ? signal.reason : timeout.reason);
  if (signal?.aborted) stop();
  for (const one of [timeout, signal]) one?.addEventListener('abort', stop);
  const forget = () => {
    for (const one of [timeout, signal]) one?.removeEventListener('abort', stop);
  };
  return { signal: controller.signal, forget };
}

/** Null for what is no JSON: a proxy in between may answer in its own form. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
