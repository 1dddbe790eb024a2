import { z } from 'zod';
import { amountSchema } from './amount';
import { merchantIdSchema, partnerIdSchema } from './identifiers';

/** Control characters, white space, backslash and halves of surrogate pairs: URL parsers drop or rewrite these silently. */
const UNSAFE_IN_URL = /[\u0000-\u0020\u007f-\u00a0\\\u2028\u2029\ufeff]|\p{Cs}/u;

function isFinancePage(text: string): boolean {
  if (!/^https:\/\//i.test(text) || UNSAFE_IN_URL.test(text) || !URL.canParse(text)) return false;
  const url = new URL(text);
  return url.username === '' && url.password === '';
}

const merchantFinanceUrlSchema = z
  .string()
  .refine(isFinancePage, 'merchant_finance_url must be a full https:// URL without user name and password.')
  .meta({
    format: 'uri',
    description: "The merchant's finance page. Its own query and fragment are kept on every link.",
    examples: ['https://shop.example/finance'],
  });

const merchantReferenceSchema = z
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
    maxLength: 64,
    pattern: '^[A-Za-z0-9 ._-]*$',
    examples: ['basket 2041'],
  });

/** Body of `POST /v1/finance-quote`, its fields in the order of spec §2.2, which is the order they are checked in. */
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
  .meta({ id: 'QuoteRequest', description: 'Unknown fields are ignored and not stored.' });

export type QuoteRequestBody = z.infer<typeof quoteRequestSchema>;
