import {
  ERROR_STATUSES,
  INTERNAL_ERROR_STATUSES,
  type AnyErrorBody,
  type ErrorCode,
  type ErrorDetails,
  type InternalErrorCode,
  type InternalErrorDetails,
} from '../contracts/errors';

const STATUSES = { ...ERROR_STATUSES, ...INTERNAL_ERROR_STATUSES };

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly statusCode: number;

  constructor(
    readonly code: ErrorCode | InternalErrorCode,
    message: string,
    readonly details?: ErrorDetails & InternalErrorDetails,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.statusCode = STATUSES[code];
  }
}

const INTERNAL_ERROR = new ApiError(
  'INTERNAL_SERVER_ERROR',
  'Something went wrong on our side. Try again; quote the X-Request-Id if it persists.',
);

export function notRegistered(environment: 'sandbox' | 'live'): ApiError {
  const message = `No webhook is registered for the ${environment} environment, or it is disabled.`;
  return new ApiError('WEBHOOK_NOT_REGISTERED', message, { environment });
}

/** @param fault what is wrong with the field or query parameter, such as `must lie before now.` */
export const invalidField = (field: string, fault: string) =>
  new ApiError('INVALID_REQUEST', `${field} ${fault}`, { field });

export const NO_SUCH_ENDPOINT = new ApiError('NOT_FOUND', 'There is no such endpoint.');

export function errorBody(error: ApiError): AnyErrorBody {
  const { code, message, details } = error;
  const told = details === undefined ? { code, message } : { code, message, details };
  return { success: false, error: told } as AnyErrorBody;
}

/**
 * Turns anything thrown into the caller's error. All faults found by Fastify are `INVALID_REQUEST`, as
 * the contract has no 405, 413, 415 and 431.
 */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const status = (thrown as { statusCode?: unknown } | null)?.statusCode;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    const code = (thrown as { code?: unknown }).code;
    const message =
      code === 'FST_ERR_CTP_BODY_TOO_LARGE'
        ? 'The body is larger than 16 KiB.'
        : 'The request could not be read: check its framing, its Content-Type and its body.';
    return new ApiError('INVALID_REQUEST', message, undefined, { cause: thrown });
  }
  return INTERNAL_ERROR;
}
