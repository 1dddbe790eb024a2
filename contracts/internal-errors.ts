import { z } from 'zod';
import { errorBodySchema, fieldDetails, type ErrorBody } from './errors';

/** Every `error.code` of the internal listener. Closed: a new one is a change of its contract. */
const internalErrorCodes = [
  'INVALID_REQUEST',
  'MISSING_FIELD',
  'INVALID_AMOUNT_FORMAT',
  'QUOTE_ID_MISMATCH',
  'INVALID_LENDER_REFERENCE',
  'UNAUTHENTICATED',
  'NOT_FOUND',
  'LENDER_NOT_FOUND',
  'QUOTE_NOT_FOUND',
  'PRODUCT_NOT_QUOTED',
  'APPLICATION_NOT_FOUND',
  'APPLICATION_EXISTS',
  'LENDER_EVENT_EXISTS',
  'AMOUNTS_NOT_QUOTED',
  'MERCHANT_REFERENCE_MISMATCH',
  'RATE_LIMIT_EXCEEDED',
  'INTERNAL_SERVER_ERROR',
] as const;
export type InternalErrorCode = (typeof internalErrorCodes)[number];

const internalErrorDetailsSchema = z
  .object({
    ...fieldDetails,
    credit_application_id: z
      .string()
      .meta({ description: 'APPLICATION_EXISTS: what the reference stands for.' }),
  })
  .partial()
  .meta({ id: 'ErrorDetails', description: 'The values involved, depending on the code.' });

export type InternalErrorDetails = z.infer<typeof internalErrorDetailsSchema>;

export const internalErrorSchema = errorBodySchema(internalErrorCodes, internalErrorDetailsSchema);

export type AnyErrorBody = ErrorBody | z.infer<typeof internalErrorSchema>;
