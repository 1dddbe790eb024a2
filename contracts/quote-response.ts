import { answeredAmount, answerSchema } from './fields';
import { z } from 'zod';
import { FINANCE_URL_PATTERN } from './quote-request';

const money = (description: string) => answeredAmount('1000.00', description);

/** One representative example. Field names are made for display: `_` becomes a space. */
export const productItemSchema = z
  .object({
    lender: z.string().meta({ description: 'Name of the lender.', examples: ['Example Bank'] }),
    credit_product: z.string().meta({
      description: 'The product, unique within the merchant.',
      examples: ['Classic credit 12 months'],
    }),
    purchase_price: money('Total basket value.'),
    customer_deposit: money('Deposit used; may have been raised to meet the minimum.'),
    loan_amount: money('Amount financed.'),
    first_payment_type: z.string().meta({
      description:
        'Type of the first payment: `monthly_repayment` (the first repayment), `deposit` (the customer deposit) or `none`.',
      examples: ['monthly_repayment'],
    }),
    first_payment_amount: money('Amount of the first payment.'),
    initial_payment_due_value: z.int().meta({ description: 'When the first payment is due.', examples: [1] }),
    initial_payment_due_unit: z
      .string()
      .meta({ description: 'Unit of that: `days` or `months`.', examples: ['months'] }),
    apr: z.string().meta({ description: 'APR with the % sign and its type.', examples: ['9.9% Fixed'] }),
    annual_interest_rate: z.string().meta({
      description:
        'Annual interest rate with the % sign; flat (cost / loan / years from drawdown to the last payment) unless agreed otherwise.',
      examples: ['5.21%'],
    }),
    number_of_repayments: z.int().meta({ description: 'Number of monthly payments.', examples: [12] }),
    monthly_repayment: money('Monthly payment.'),
    cost_of_credit: money('Total interest over the term.'),
    total_amount_payable_excluding_deposit: money('Total repaid on the financed amount only.'),
    merchant_finance_url: z.string().meta({
      pattern: FINANCE_URL_PATTERN,
      description:
        'Deep link that starts an application for exactly this product. Use it exactly as returned.',
    }),
  })
  .meta({ id: 'Product' });

const depositAdjustmentSchema = z
  .object({
    requested_deposit: money('Deposit that was sent.'),
    corrected_deposit: money('Deposit actually used.'),
    adjustment_reason: z.string().meta({
      description: 'For people.',
      examples: ['A minimum deposit of 10% of the purchase price is required.'],
    }),
    affected_products: z
      .array(
        z.object({
          lender: z.string(),
          credit_product: z.string(),
          customer_deposit: money('Deposit used for this product.'),
          loan_amount: money('Amount financed by this product.'),
        }),
      )
      .meta({ description: 'Empty when no product list is given.' }),
  })
  .meta({ id: 'DepositAdjustment', description: 'Present only when the deposit was changed.' });

export const quoteResponseSchema = answerSchema('QuoteResponse', {
  service_quote_id: z
    .string()
    .meta({ description: 'Store it with the basket.', examples: ['qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'] }),
  merchant_reference: z
    .string()
    .nullable()
    .meta({ description: 'The reference that was sent, trimmed.', examples: ['basket 2041'] }),
  summary: z.object({
    display: z.boolean().meta({ description: 'Whether finance may be shown at all.' }),
    finance_offer_summary: z.string().meta({
      description:
        'HTML, at most 80 characters of visible text with one "Learn more" link; empty when `display` is false.',
    }),
  }),
  products: z.array(productItemSchema).meta({ description: 'Representative examples; may be empty.' }),
  products_notice: z
    .object({
      code: z.string().meta({
        description:
          'Why the list is empty on purpose. Treat a value you do not know as "do not display products".',
        examples: ['MERCHANT_FCA_NOT_AUTHORISED'],
      }),
      message: z.string(),
    })
    .meta({ id: 'ProductsNotice' })
    .optional(),
  deposit_adjustment: depositAdjustmentSchema.optional(),
});

export type QuoteResponseBody = z.infer<typeof quoteResponseSchema>;
export type ProductItem = z.infer<typeof productItemSchema>;
