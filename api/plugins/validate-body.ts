import type { Validated } from '../../contracts/validate';
import { ApiError } from '../errors';

/** The validated body. @throws ApiError with the contract's code when it breaks the contract. */
export function bodyOf<T>(validate: (body: unknown) => Validated<T>, body: unknown): T {
  const result = validate(body);
  if ('value' in result) return result.value;
  const { code, message, details } = result.violation;
  throw new ApiError(code, message, details);
}
