import {
  refusal,
  type AnyErrorBody,
  type AnyErrorCode,
  type GivenTo,
  type Refusal,
} from '../contracts/errors';

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly statusCode: number;
  readonly code: AnyErrorCode;
  readonly body: AnyErrorBody;

  constructor({ status, error }: Refusal, options?: ErrorOptions) {
    super(error.message, options);
    this.statusCode = status;
    this.code = error.code;
    this.body = { success: false, error } as AnyErrorBody;
  }
}

/** @param given what its text is made of (contracts/errors.ts) */
export const refused = <Code extends AnyErrorCode>(code: Code, ...given: GivenTo<Code>) =>
  new ApiError(refusal(code, ...given));

/** @param fault what is wrong with the field or query parameter, such as `must lie before now.` */
export const invalidField = (field: string, fault: string) =>
  refused('INVALID_REQUEST', `${field} ${fault}`, field);

const INTERNAL_ERROR = refused('INTERNAL_SERVER_ERROR');
export const NOT_OF_JSON = refused('INVALID_REQUEST', 'Content-Type must be application/json.');

/**
 * Turns anything thrown into the caller's error. All faults found by Fastify are `INVALID_REQUEST`, as
 * the contract has no 405, 413, 415 and 431.
 */
export function toApiError(thrown: unknown): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const status = (thrown as { statusCode?: unknown } | null)?.statusCode;
  if (typeof status === 'number' && status >= 400 && status < 500) {
    const code = (thrown as { code?: unknown }).code;
    if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return NOT_OF_JSON;
    const message =
      code === 'FST_ERR_CTP_BODY_TOO_LARGE'
        ? 'The body is larger than 16 KiB.'
        : 'The request could not be read: check its framing and its body.';
    return new ApiError(refusal('INVALID_REQUEST', message), { cause: thrown });
  }
  return INTERNAL_ERROR;
}
