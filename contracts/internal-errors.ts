import { z } from 'zod';
import { errorBodySchema, fieldDetails, type ErrorBody } from './errors';

/**
 * Every `error.code` of the internal listener, and when it is sent, for the document. Closed: a new one is a change of its contract.
 */
export const INTERNAL_ERROR_CAUSES = {
  INVALID_REQUEST:
    'a field, the link, the body (which must not be compressed) or the protocol is not as it must be',
  MISSING_FIELD: 'required fields are absent or null',
  INVALID_AMOUNT_FORMAT: 'an amount has more than two decimal places',
  QUOTE_ID_MISMATCH: '`service_quote_id` and `quote_id` are both there and differ',
  INVALID_LENDER_REFERENCE: "the reference is not of the lender's form",
  UNAUTHENTICATED: 'the service key is missing, unknown, expired, inactive or revoked',
  NOT_FOUND: 'there is no such path or method',
  LENDER_NOT_FOUND: 'there is no such lender for this key',
  QUOTE_NOT_FOUND: 'there is no such quote for this key, or its month has been dropped',
  APPLICATION_NOT_FOUND: 'there is no such application for this key',
  APPLICATION_EXISTS: "the lender's reference stands for another application of this environment",
  LENDER_EVENT_EXISTS: "the lender's event id stands for another event",
  NOTHING_QUOTED: 'no product fitted when the quote was made',
  PRODUCT_NOT_QUOTED: 'the product did not fit when the quote was made',
  AMOUNTS_NOT_QUOTED: 'the amounts are not those that were quoted',
  MERCHANT_REFERENCE_MISMATCH: "the reference is not the quote's",
  INTERNAL_SERVER_ERROR: 'a fault on our side; ask again, it is safe',
} as const;

export type InternalErrorCode = keyof typeof INTERNAL_ERROR_CAUSES;
const internalErrorCodes = Object.keys(INTERNAL_ERROR_CAUSES) as InternalErrorCode[];

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
