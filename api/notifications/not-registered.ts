import { ApiError } from '../errors';

/** There is no active endpoint to send to. */
export function notRegistered(environment: 'sandbox' | 'live'): ApiError {
  const message = `No webhook is registered for the ${environment} environment, or it is disabled.`;
  return new ApiError('WEBHOOK_NOT_REGISTERED', message, { environment });
}
