import type { components } from './schema.js';

/** Stable codes; one that is not listed may come one day. */
export type ErrorCode = components['schemas']['ErrorResponse']['error']['code'];

type Details = components['schemas']['ErrorResponse']['error']['details'];

/** What the service refused, or failed to do. Branch on `code`; the message is for people. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** HTTP status. */
  readonly status: number;
  readonly code: ErrorCode;
  readonly details: Details;
  /** Name it when you ask the service's people about it. */
  readonly requestId: string | null;
  /** Seconds to wait after a 429; null otherwise. */
  readonly retryAfterSeconds: number | null;

  constructor(response: Response, body: unknown) {
    const error = errorIn(body);
    super(error?.message ?? `The service answered ${response.status}.`);
    this.status = response.status;
    this.code = error?.code ?? 'UNEXPECTED_ANSWER';
    this.details = error?.details;
    this.requestId = response.headers.get('x-request-id');
    const seconds = Number(response.headers.get('retry-after') ?? Number.NaN);
    this.retryAfterSeconds = Number.isFinite(seconds) ? seconds : null;
  }
}

/** A proxy in between may answer in its own form. */
function errorIn(body: unknown): { code: ErrorCode; message: string; details?: Details } | null {
  const error = (body as { error?: { code?: unknown; message?: unknown; details?: Details } } | null)?.error;
  if (typeof error?.code !== 'string' || typeof error.message !== 'string') return null;
  return { code: error.code, message: error.message, details: error.details };
}
