import type { ErrorCode, ErrorDetails } from '../contracts/errors';
import type { AnyErrorBody, InternalErrorCode, InternalErrorDetails } from '../contracts/internal-errors';

/** A failure the caller is told of in the contract's form. Throw it from any hook or handler. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly statusCode: number;

  constructor(
    readonly code: ErrorCode | InternalErrorCode,
    /** For the caller: no internals. */
    message: string,
    readonly details?: ErrorDetails & InternalErrorDetails,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.statusCode = statusOf(code);
  }
}

/** The HTTP status of an error code (spec §7.4, §7.5; of the internal listener design §5). */
export function statusOf(code: ErrorCode | InternalErrorCode): 400 | 401 | 404 | 409 | 422 | 429 | 500 {
  switch (code) {
    case 'INVALID_REQUEST':
    case 'MISSING_FIELD':
    case 'INVALID_AMOUNT_FORMAT':
    case 'QUOTE_ID_MISMATCH':
    case 'INVALID_LENDER_REFERENCE':
      return 400;
    case 'UNAUTHENTICATED':
      return 401;
    case 'MERCHANT_NOT_FOUND':
    case 'NOT_FOUND':
    case 'LENDER_NOT_FOUND':
    case 'QUOTE_NOT_FOUND':
    case 'APPLICATION_NOT_FOUND':
    case 'NOTIFICATION_NOT_FOUND':
    case 'RECOVERY_NOT_FOUND':
      return 404;
    case 'WEBHOOK_NOT_REGISTERED':
    case 'NOTIFICATION_NOT_RESENDABLE':
    case 'RECOVERY_UNDER_WAY':
    case 'RECOVERY_DISABLED':
    case 'APPLICATION_EXISTS':
    case 'LENDER_EVENT_EXISTS':
      return 409;
    case 'AMOUNT_TOO_LOW':
    case 'AMOUNT_TOO_HIGH':
    case 'NOTHING_QUOTED':
    case 'PRODUCT_NOT_QUOTED':
    case 'AMOUNTS_NOT_QUOTED':
    case 'MERCHANT_REFERENCE_MISMATCH':
      return 422;
    case 'RATE_LIMIT_EXCEEDED':
    case 'TEST_NOTIFICATION_LIMIT_REACHED':
      return 429;
    case 'INTERNAL_SERVER_ERROR':
    case 'MERCHANT_CONFIGURATION_INCOMPLETE':
      return 500;
    default:
      return code satisfies never;
  }
}

const INTERNAL_ERROR = new ApiError(
  'INTERNAL_SERVER_ERROR',
  'Something went wrong on our side. Try again; quote the X-Request-Id if it persists.',
);

/** There is no active endpoint to send to. */
export function notRegistered(environment: 'sandbox' | 'live'): ApiError {
  const message = `No webhook is registered for the ${environment} environment, or it is disabled.`;
  return new ApiError('WEBHOOK_NOT_REGISTERED', message, { environment });
}

/** The answer to an unknown path or method. */
export const NO_SUCH_ENDPOINT = new ApiError('NOT_FOUND', 'There is no such endpoint.');

export function errorBody(error: ApiError): AnyErrorBody {
  const { code, message, details } = error;
  const told = details === undefined ? { code, message } : { code, message, details };
  return { success: false, error: told } as AnyErrorBody;
}

/**
 * Turns anything thrown into what the caller is told. Faults the framework finds in a request (size, media type,
 * framing) are all `INVALID_REQUEST`: the contract knows no 405, 413, 415 or 431.
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
