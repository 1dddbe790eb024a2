import {
  answeredAmount,
  answerSchema,
  momentField,
  sentMoment,
  text,
  textOrNull,
  wholeOrNull,
} from './fields';
import { z } from 'zod';
import type { ApplicationTerms } from '../domain/application';
import { APPLICATION_STATES, STORIES, VERDICTS, type Story } from '../domain/application-states';
import { linkParameters } from '../domain/finance-link';
import { amountSchema, financeUrlFault, merchantReferenceSchema } from './quote-request';
import { bodyValidator, requestBody, violation, type RequestBody, type Validated } from './validate';

/** The form of identifiers made by others: safe in any log and any database. */
const visibleText = (field: string, longest: number) =>
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
const creditProduct = z.string().max(200, 'credit_product must be at most 200 characters.');

const applicationByParametersSchema = z
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
    credit_product: creditProduct
      .nullish()
      .meta({ description: 'The product chosen; a link of the summary names none.' }),
    merchant_reference: merchantReferenceSchema.meta({
      description: "When it is there, it must be the quote's.",
    }),
  })
  .meta({ id: 'ApplicationByParameters', description: 'Other fields are ignored and not stored.' });

const FINANCE_LINK =
  'https://shop.example/finance?loan_amount=900.00&customer_deposit=100.00&service_quote_id=qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6';

/** An application by a finance link, for the document. Its parameters are checked as those above. */
const applicationByLinkSchema = z
  .object({
    ...lenderFields,
    finance_link: z.string().meta({
      description: 'A finance link exactly as the quote returned it. None of its parameters beside it.',
      format: 'uri',
      examples: [FINANCE_LINK],
    }),
  })
  .meta({ id: 'ApplicationByLink', description: 'Other fields are ignored and not stored.' });

interface ApplicationRequest extends ApplicationTerms {
  readonly lender: string;
  readonly lenderReference: string;
  readonly quoteId: string;
  readonly merchantReference: string | null;
}

const validate = bodyValidator(applicationByParametersSchema);

function readApplicationRequest(body: unknown): Validated<ApplicationRequest> {
  const expanded = expandLink(body);
  if ('violation' in expanded) return expanded;
  const checked = validate(expanded.value);
  if ('violation' in checked) return checked;
  const sent = checked.value;
  const { service_quote_id: current, quote_id: older } = sent;
  if (current && older && current !== older) return violation('QUOTE_ID_MISMATCH');
  const id = current ?? older;
  if (!id) return violation('MISSING_FIELD', ['service_quote_id']);
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

const applied = { lender: 'lender_a', lender_reference: 'AB12CD34' };
export const applicationRequest = {
  schemas: [applicationByLinkSchema, applicationByParametersSchema],
  examples: {
    parameters: {
      summary: 'By the parameters of its link',
      value: {
        ...applied,
        service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
        loan_amount: '900.00',
        customer_deposit: '100.00',
        credit_product: '12 months at 9.9% APR',
      },
    },
    link: {
      summary: 'By its link',
      value: { ...applied, finance_link: FINANCE_LINK },
    },
  },
  read: readApplicationRequest,
} satisfies RequestBody;

/** Replaces a link by its parameters, and refuses one that is sent twice, in the link or beside it. */
function expandLink(body: unknown): Validated<unknown> {
  const link = (body as { finance_link?: unknown } | null)?.finance_link ?? null;
  if (link === null || typeof body !== 'object') return { value: body };
  const fault = typeof link === 'string' ? financeUrlFault(link) : 'must be text.';
  if (typeof link !== 'string' || fault !== null)
    return violation('INVALID_REQUEST', `finance_link ${fault}`, 'finance_link');
  const { sent, repeated } = linkParameters(link);
  if (repeated !== null)
    return violation('INVALID_REQUEST', `finance_link carries ${repeated} twice.`, 'finance_link');
  const beside = Object.keys(sent).find((name) => ((body as Record<string, unknown>)[name] ?? null) !== null);
  if (beside !== undefined)
    return violation('INVALID_REQUEST', `Send finance_link or ${beside}, not both.`, beside);
  return { value: { ...body, ...sent } };
}

const sentStatus = z.enum(APPLICATION_STATES, `status must be one of ${APPLICATION_STATES.join(', ')}.`);

/** How far a lender's clock may be ahead of ours. More is a planned date, or a wrong clock. */
export const MOST_MINUTES_AHEAD = 5;

const lenderEventRequestSchema = z
  .object({
    lender_event_id: visibleText('lender_event_id', 128).meta({
      description: "The lender's own id of the event: the same again answers the same.",
      examples: ['9f1c-0042'],
    }),
    status: sentStatus.meta({ description: 'State that the application is in now, as the lender sees it.' }),
    occurred_at: sentMoment(
      'occurred_at',
      `When the lender says it happened, with Z or an offset; kept to the millisecond. At most ${MOST_MINUTES_AHEAD} minutes in the future.`,
    ).meta({ examples: ['2026-11-21T11:59:58.000Z'] }),
  })
  .meta({ id: 'LenderEventRequest', description: 'Other fields are ignored and not stored.' });

export const lenderEventRequest = requestBody(lenderEventRequestSchema, {
  accepted: {
    summary: 'The lender has accepted',
    value: { lender_event_id: '9f1c-0042', status: 'accepted', occurred_at: '2026-11-21T11:59:58.000Z' },
  },
});

const simulateApplicationSchema = z
  .strictObject({
    service_quote_id: visibleText('service_quote_id', 64).meta({
      description: 'A quote of yours, made with a sandbox key.',
      examples: ['qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'],
    }),
    credit_product: creditProduct
      .optional()
      .meta({ description: 'One of its products; the first when omitted.' }),
    story: z
      .enum(Object.keys(STORIES) as Story[], `story must be one of ${Object.keys(STORIES).join(', ')}.`)
      .optional()
      .meta({
        description: 'Events to record at once, one after the other; none but `created` when omitted.',
      }),
  })
  .meta({ id: 'SimulateApplicationRequest' });

export const simulateApplicationRequest = requestBody(simulateApplicationSchema, {
  story: {
    summary: 'An application that is paid out',
    value: { service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6', story: 'completed' },
  },
});

const simulateEventSchema = z
  .strictObject({
    status: sentStatus.meta({ description: 'The state that the lender reports.', examples: ['submitted'] }),
  })
  .meta({ id: 'SimulateEventRequest' });

export const simulateEventRequest = requestBody(simulateEventSchema, {
  submitted: { summary: 'The shopper has applied', value: { status: 'submitted' } },
});

const state = () => z.enum(APPLICATION_STATES);

const lenderEventFields = {
  lender_event_id: z.string(),
  status: state().meta({ description: 'What the lender told.' }),
  occurred_at: momentField('When the lender says it happened.'),
  received_at: momentField('When it arrived here.'),
} as const;

/** The answer to a lender's event, always the same for the same event. */
export const lenderEventResponseSchema = answerSchema('LenderEventResponse', {
  credit_application_id: z.string(),
  ...lenderEventFields,
  outcome: z.enum(VERDICTS).meta({
    description:
      '`applied`: the application came into this state, and its partner is told. `same_state`: it was in it already. ' +
      '`waiting`: a step before it is missing; it is applied once that is told, or without it when the wait is over. ' +
      '`not_applied`: it lies behind, or can never follow. All are stored.',
  }),
  application_status: state().meta({ description: 'State of the application once this was taken in.' }),
});

const lenderEventSchema = z
  .object({
    ...lenderEventFields,
    outcome: z.enum(VERDICTS).meta({ description: 'What has become of it by now.' }),
    previous_status: state().nullable().meta({ description: 'State that it replaced; null unless applied.' }),
    sequence: wholeOrNull('Sequence of its notification; null unless applied.'),
    applied_at: momentField('When it was applied; null unless it was.').nullable(),
    waits_until: momentField(
      'While it is `waiting`: when it is applied without the steps that are missing. Null otherwise.',
    ).nullable(),
  })
  .meta({ id: 'LenderEvent' });

const money = () => answeredAmount('900.00');

const application = {
  credit_application_id: z.string().meta({ examples: ['app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'] }),
  environment: z.enum(['sandbox', 'live']).meta({ description: 'That of the key that made the quote.' }),
  partner_id: z.string(),
  merchant_id: z.string(),
  service_quote_id: z.string(),
  merchant_reference: textOrNull("The partner's own, from the quote."),
  lender: z.string(),
  lender_reference: z.string(),
  loan_amount: money(),
  customer_deposit: money(),
  credit_product: textOrNull('Null when the link named none.'),
  created_at: momentField('When it was opened.'),
} as const;

/** The answer to opening an application, always the same for the same request. */
export const createdApplicationSchema = answerSchema('CreatedApplication', application);

export type CreatedApplicationBody = z.infer<typeof createdApplicationSchema>;

export const applicationResponseSchema = answerSchema('ApplicationResponse', {
  ...application,
  status: state(),
  updated_at: momentField('When it came into this state.'),
  lender_events: z.array(lenderEventSchema).meta({
    description: 'All that the lender told, in the order of arrival, applied or not.',
  }),
  notifications: z
    .array(
      z.object({
        notification_id: z.string(),
        event_id: z.string(),
        event_type: z.string(),
        sequence: z.int().nullable(),
        state: text('`queued`, `started`, `held`, `delivered`, `failed`, `cancelled` or `expired`.'),
        end_reason: textOrNull('Why it is held, or ended undelivered.'),
        created_at: momentField('When it was made.'),
        delivered_at: momentField('The first 2xx.').nullable(),
      }),
    )
    .meta({ description: 'What the partner is told, in order. Those of dropped months are missing.' }),
});

export type ApplicationBody = z.infer<typeof applicationResponseSchema>;
