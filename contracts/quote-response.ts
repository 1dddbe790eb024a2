import { answered, answeredAmount, answerSchema, text, textOrNull, whole } from './fields';
import { z } from 'zod';
import { FINANCE_URL_PATTERN } from './quote-request';

const money = (description: string) => answeredAmount('1000.00', description);

/** One representative example. Field names are made for display: `_` becomes a space. */
export const productItemSchema = z
  .object({
    lender: text('Name of the lender.', 'Example Bank'),
    credit_product: text('The product, unique within the merchant.', 'Classic credit 12 months'),
    purchase_price: money('Total basket value.'),
    customer_deposit: money('Deposit used; may have been raised to meet the minimum.'),
    loan_amount: money('Amount financed.'),
    first_payment_type: text(
      'Type of the first payment: `monthly_repayment` (the first repayment), `deposit` (the customer deposit) or `none`.',
      'monthly_repayment',
    ),
    first_payment_amount: money('Amount of the first payment.'),
    initial_payment_due_value: whole('When the first payment is due.', 1),
    initial_payment_due_unit: text('Unit of that: `days` or `months`.', 'months'),
    apr: text('APR with the % sign and its type.', '9.9% Fixed'),
    annual_interest_rate: text(
      'Annual interest rate with the % sign; flat (cost / loan / years from drawdown to the last payment) unless agreed otherwise.',
      '5.21%',
    ),
    number_of_repayments: whole('Number of monthly payments.', 12),
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
    adjustment_reason: text('For people.', 'A minimum deposit of 10% of the purchase price is required.'),
    affected_products: z
      .array(
        z.object({
          lender: text('Name of the lender.', 'Example Bank'),
          credit_product: text('The product.', 'Classic credit 12 months'),
          customer_deposit: money('Deposit used for this product.'),
          loan_amount: money('Amount financed by this product.'),
        }),
      )
      .meta({ description: 'Empty when no product list is given.' }),
  })
  .meta({ id: 'DepositAdjustment', description: 'Present only when the deposit was changed.' });

export const quoteResponseSchema = answerSchema('QuoteResponse', {
  service_quote_id: text('Store it with the basket.', 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6'),
  merchant_reference: textOrNull('The reference that was sent, trimmed.', 'basket 2041'),
  summary: z.object({
    display: z.boolean().meta({ description: 'Whether finance may be shown at all.' }),
    finance_offer_summary: text(
      'HTML, at most 80 characters of visible text with one "Learn more" link; empty when `display` is false.',
    ),
  }),
  products: z.array(productItemSchema).meta({ description: 'Representative examples; may be empty.' }),
  products_notice: z
    .object({
      code: text(
        'Why the list is empty on purpose. Treat a value you do not know as "do not display products".',
        'MERCHANT_FCA_NOT_AUTHORISED',
      ),
      message: text('For people.', 'Products are not shown for this merchant.'),
    })
    .meta({ id: 'ProductsNotice' })
    .optional(),
  deposit_adjustment: depositAdjustmentSchema.optional(),
});

export type QuoteResponseBody = z.infer<typeof quoteResponseSchema>;
export type ProductItem = z.infer<typeof productItemSchema>;

const link = (more: string) =>
  `https://shop.example/finance?loan_amount=900.00&customer_deposit=100.00${more}&service_quote_id=qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6&merchant_reference=basket%202041`;

/** A test asks for the first one (test/api/documentation.test.ts). */
export const quoteExamples = {
  offers: answered<QuoteResponseBody>('Offers to show', {
    service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B6',
    merchant_reference: 'basket 2041',
    summary: {
      display: true,
      finance_offer_summary: `Spread the cost from £38.58 a month at 19.9% APR representative. <a href="${link('').replaceAll('&', '&amp;')}">Learn more</a>`,
    },
    products: [
      {
        lender: 'Test Lender A',
        credit_product: '12 months at 9.9% APR',
        purchase_price: '1000.00',
        customer_deposit: '100.00',
        loan_amount: '900.00',
        first_payment_type: 'monthly_repayment',
        first_payment_amount: '78.91',
        initial_payment_due_value: 1,
        initial_payment_due_unit: 'months',
        apr: '9.9% Fixed',
        annual_interest_rate: '5.21%',
        number_of_repayments: 12,
        monthly_repayment: '78.91',
        cost_of_credit: '46.92',
        total_amount_payable_excluding_deposit: '946.92',
        merchant_finance_url: link('&credit_product=12%20months%20at%209.9%25%20APR'),
      },
    ],
  }),
  nothing: answered<QuoteResponseBody>('Nothing fits: show no finance', {
    service_quote_id: 'qte_01KAF1Z4Q0T6M5S7Y2W3X4V5B7',
    merchant_reference: null,
    summary: { display: false, finance_offer_summary: '' },
    products: [],
  }),
};
