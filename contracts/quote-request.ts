import { z } from 'zod';
import { amountSchema } from './amount';
import { FINANCE_URL_PATTERN, financeUrlFault, isTooLong, LONGEST_FINANCE_URL } from './finance-url';

/** `P` and six digits. */
const partnerIdSchema = z
  .string()
  .regex(/^P\d{6}$/, 'partner_id must be the letter P followed by six digits.')
  .meta({ description: 'The partner that owns the API key.', examples: ['P100001'] });

/** `M` and six or seven digits, or the alternative form `XX-XXXX-XXXX-XXXX`. */
const merchantIdSchema = z
  .string()
  .regex(
    /^(M\d{6,7}|[A-Z]{2}(-[A-Z0-9]{4}){3})$/,
    'merchant_id must be the letter M followed by six or seven digits, or two letters and three groups of four characters joined by hyphens.',
  )
  .meta({
    description: 'The merchant, as supplied by the service.',
    examples: ['M100001', 'AB-1C2D-3E4F-5G6H'],
  });

const merchantFinanceUrlSchema = z
  .string()
  .superRefine((sent, context) => {
    const fault = isTooLong(sent)
      ? `must be at most ${LONGEST_FINANCE_URL} characters long.`
      : financeUrlFault(sent);
    if (fault !== null) context.addIssue(`merchant_finance_url ${fault}`);
  })
  .meta({
    maxLength: LONGEST_FINANCE_URL,
    pattern: FINANCE_URL_PATTERN,
    description:
      "The merchant's finance page: a domain name that UTS 46 accepts, or an IP address; no user name or password, white space or control characters. Its own query and fragment are kept on every link.",
    examples: ['https://shop.example/finance'],
  });

/** Trimmed; absent, null and blank are null. */
export const merchantReferenceSchema = z
  .string()
  .transform((sent) => sent.trim())
  .pipe(
    z
      .string()
      .max(64, 'merchant_reference must be at most 64 characters.')
      .regex(/^[A-Za-z0-9 ._-]*$/, 'merchant_reference may hold letters, digits, spaces and . - _ only.'),
  )
  .transform((trimmed) => (trimmed === '' ? null : trimmed))
  .nullish()
  .transform((reference) => reference ?? null)
  .meta({
    description:
      "The partner's own reference, returned on the quote and on every notification. No customer details. At most 64 characters: letters, digits, space, `.`, `-`, `_`; trimmed.",
    // Length and characters are those of what is left after trimming.
    pattern: '^\\s*[A-Za-z0-9 ._-]{0,64}\\s*$',
    examples: ['basket 2041'],
  });

/** Body of `POST /v1/finance-quote`, its fields in the order in which they are checked. */
export const quoteRequestSchema = z
  .object({
    merchant_id: merchantIdSchema,
    partner_id: partnerIdSchema,
    loan_amount: amountSchema('loan_amount', 'positive', 'Amount to finance, in pounds.'),
    customer_deposit: amountSchema(
      'customer_deposit',
      'not negative',
      'Deposit offered, in pounds. May be raised to a minimum; counts as 0.00 when omitted.',
    )
      .nullish()
      .transform((amount) => amount ?? null),
    merchant_finance_url: merchantFinanceUrlSchema,
    merchant_reference: merchantReferenceSchema,
  })
  .meta({
    id: 'QuoteRequest',
    description:
      'Unknown fields are ignored and not stored. A field sent twice, and `__proto__` or `constructor.prototype` at any depth, are refused.',
  });

export type QuoteRequestBody = z.infer<typeof quoteRequestSchema>;
