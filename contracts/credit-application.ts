import { z } from 'zod';
import type { ApplicationTerms } from '../domain/application';
import { linkParameters } from '../domain/finance-link';
import { amountSchema } from './amount';
import { financeUrlFault } from './finance-url';
import { merchantReferenceSchema } from './quote-request';
import { bodyValidator, type Validated, type Violation } from './validate';

/** What identifiers of others may be made of, so that they can stand in any log and any database. */
export const visibleText = (field: string, longest: number) =>
  z
    .string()
    .regex(
      new RegExp(`^[\\x21-\\x7e]{1,${longest}}$`),
      `${field} must be 1 to ${longest} visible ASCII characters.`,
    );

const lenderFields = {
  lender: z
    .string()
    .regex(/^[a-z][a-z0-9_]{1,31}$/, 'lender must be the key of a lender, such as lender_a.')
    .meta({ description: 'Key of the lender.', examples: ['lender_a'] }),
  lender_reference: visibleText('lender_reference', 64).meta({
    description: "The lender's own reference, of the form that is configured for the lender.",
    examples: ['AB12CD34'],
  }),
};

const quoteId = (field: string) => visibleText(field, 64).nullish();

/** An application by the parameters of a finance link. */
export const applicationByParametersSchema = z
  .object({
    ...lenderFields,
    service_quote_id: quoteId('service_quote_id').meta({
      description: 'The quote; or `quote_id`.',
      examples: ['qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'],
    }),
    quote_id: quoteId('quote_id').meta({
      description: 'The older name. When both are there they must be the same.',
    }),
    loan_amount: amountSchema('loan_amount', 'positive', 'Amount to finance, in pounds.'),
    customer_deposit: amountSchema(
      'customer_deposit',
      'not negative',
      'Deposit, in pounds; 0.00 when omitted.',
    ).nullish(),
    credit_product: z
      .string()
      .max(200, 'credit_product must be at most 200 characters.')
      .nullish()
      .meta({ description: 'The product chosen; a link of the summary names none.' }),
    merchant_reference: merchantReferenceSchema.meta({
      description: "When it is there, it must be the quote's.",
    }),
  })
  .meta({ id: 'ApplicationByParameters', description: 'Other fields are ignored and not stored.' });

/** An application by a whole finance link, for the document: its parameters are checked as those above. */
export const applicationByLinkSchema = z
  .object({
    ...lenderFields,
    finance_link: z.string().meta({
      description: 'A finance link exactly as the quote returned it. None of its parameters beside it.',
      format: 'uri',
      examples: [
        'https://shop.example/finance?loan_amount=900.00&customer_deposit=100.00&service_quote_id=qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
      ],
    }),
  })
  .meta({ id: 'ApplicationByLink', description: 'Other fields are ignored and not stored.' });

/** What an integration asks for, whichever way it said so. Money in pence. */
interface ApplicationRequest extends ApplicationTerms {
  readonly lender: string;
  readonly lenderReference: string;
  readonly quoteId: string;
  readonly merchantReference: string | null;
}

const validate = bodyValidator(applicationByParametersSchema);

export function readApplicationRequest(body: unknown): Validated<ApplicationRequest> {
  const expanded = expandLink(body);
  if ('violation' in expanded) return expanded;
  const checked = validate(expanded.value);
  if ('violation' in checked) return checked;
  const sent = checked.value;
  const { service_quote_id: current, quote_id: older } = sent;
  if (current && older && current !== older) {
    const message = 'service_quote_id and quote_id name different quotes.';
    return violation('QUOTE_ID_MISMATCH', message, 'service_quote_id');
  }
  const id = current ?? older;
  if (!id) {
    const message = 'service_quote_id is required.';
    const fields = ['service_quote_id'];
    return { violation: { code: 'MISSING_FIELD', message, details: { field: 'service_quote_id', fields } } };
  }
  return {
    value: {
      lender: sent.lender,
      lenderReference: sent.lender_reference,
      quoteId: id,
      loanPence: sent.loan_amount.pence,
      depositPence: sent.customer_deposit?.pence ?? 0,
      creditProduct: sent.credit_product ?? null,
      merchantReference: sent.merchant_reference,
    },
  };
}

/** Puts the parameters of a link in its place. What stands twice, in the link or beside it, has no right answer. */
function expandLink(body: unknown): Validated<unknown> {
  const link = (body as { finance_link?: unknown } | null)?.finance_link ?? null;
  if (link === null || typeof body !== 'object') return { value: body };
  const fault = typeof link === 'string' ? financeUrlFault(link) : 'must be text.';
  if (typeof link !== 'string' || fault !== null) {
    return violation('INVALID_REQUEST', `finance_link ${fault}`, 'finance_link');
  }
  const { sent, repeated } = linkParameters(link);
  if (repeated !== null) {
    return violation('INVALID_REQUEST', `finance_link carries ${repeated} twice.`, 'finance_link');
  }
  const beside = Object.keys(sent).find((name) => ((body as Record<string, unknown>)[name] ?? null) !== null);
  if (beside !== undefined) {
    return violation('INVALID_REQUEST', `Send finance_link or ${beside}, not both.`, beside);
  }
  return { value: { ...body, ...sent } };
}

function violation(code: Violation['code'], message: string, field: string): { violation: Violation } {
  return { violation: { code, message, details: { field } } };
}
