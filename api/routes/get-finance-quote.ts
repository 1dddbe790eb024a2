import { quoteRequest, type QuoteRequestBody } from '../../contracts/quote-request';
import {
  quoteExamples,
  quoteResponseSchema,
  type ProductItem,
  type QuoteResponseBody,
} from '../../contracts/quote-response';
import type { FittedProduct, QuoteRow } from '../../db/quotes/store';
import { formatPence } from '../../domain/money';
import {
  completeMerchant,
  HIGHEST_LOAN_PENCE,
  LOWEST_LOAN_PENCE,
  ukDay,
  type Merchant,
} from '../../domain/product';
import { priceQuote, type DepositAdjustment, type PricedProduct, type Quote } from '../../domain/quote';
import { formatApr, formatRate } from '../../domain/repayment-plan';
import { TEST_MERCHANTS } from '../../domain/test-merchants';
import { newQuoteId } from '../../runtime/ids';
import { serializer } from '../answers';
import { bodyOf } from '../body';
import type { Catalogue, CatalogueMerchant } from '../catalogue';
import type { Caller } from '../checks';
import { invalidField, refused } from '../errors';
import { operation } from '../operation';

export interface GetFinanceQuoteDeps {
  readonly catalogue: Pick<Catalogue, 'findMerchant'>;
  readonly storeQuote: (row: QuoteRow) => Promise<void>;
}

export const getFinanceQuote = operation({
  call: 'POST /v1/finance-quote',
  id: 'getFinanceQuote',
  tag: 'Quotes',
  summary: 'Get a finance quote',
  description:
    'Prices every credit product of the merchant for this basket, stores the quote and returns a ready-to-display summary. ' +
    'Fields are checked in the order of the request body. Show nothing when `data.summary.display` is false. ' +
    'The test merchants M000001 (standard), M000002 (not authorised), M000003 (nothing fits), M000004 (deposit raised) ' +
    'and M000005 (set-up incomplete) answer every key.',
  query: 'ignored',
  body: quoteRequest,
  answers: { 200: ['The quote. `data.products` can be empty.', quoteResponseSchema, quoteExamples] },
  codes: ['MERCHANT_NOT_FOUND', 'AMOUNT_TOO_LOW', 'AMOUNT_TOO_HIGH', 'MERCHANT_CONFIGURATION_INCOMPLETE'],
  wrong: [
    { merchant_finance_url: 'http://shop.example/finance' },
    { merchant_id: null, loan_amount: null },
    { loan_amount: '900.001' },
  ],
  handler: (deps: GetFinanceQuoteDeps) => {
    // Designated test merchants exist for every key, and are not stored.
    const find: Catalogue['findMerchant'] = (merchantId) => {
      const designated = TEST_MERCHANTS.get(merchantId);
      return designated
        ? { merchantId, onlyFor: null, setup: completeMerchant(designated.merchant) }
        : deps.catalogue.findMerchant(merchantId);
    };
    const serialize = serializer<QuoteResponseBody>(quoteResponseSchema);

    return async (request, reply) => {
      const body = bodyOf(quoteRequest.read, request.body);
      const { caller } = request;
      if (body.partner_id !== caller.partnerId)
        throw invalidField('partner_id', 'does not match the API key.');
      const found = find(body.merchant_id);
      const merchant = usable(found instanceof Promise ? await found : found, body.merchant_id, caller);
      checkLimits(body.loan_amount);

      const at = new Date();
      const quoteId = newQuoteId(at);
      const quote = priceQuote({
        merchant,
        loanPence: body.loan_amount.pence,
        depositPence: body.customer_deposit?.pence ?? 0,
        merchantFinanceUrl: body.merchant_finance_url,
        merchantReference: body.merchant_reference,
        quoteId,
        today: ukDay(at),
      });
      const response = serialize(quoteToWire(quote, quoteId, body.merchant_reference));
      // These are bytes, because Fastify would measure the length of a text first, which converts it twice.
      const bytes = Buffer.from(response);
      // Stored before it is answered, so that each id that a partner gets has its row.
      await deps.storeQuote({
        quoteId,
        partnerId: caller.partnerId,
        keyId: caller.keyId,
        environment: caller.environment,
        merchantId: merchant.merchantId,
        loanPence: body.loan_amount.pence,
        depositPence: body.customer_deposit?.pence ?? null,
        usedDepositPence: quote.depositPence,
        merchantFinanceUrl: body.merchant_finance_url,
        merchantReference: body.merchant_reference,
        requestId: request.id,
        response,
        fitted: fittedProducts(quote),
      });
      void reply.type('application/json; charset=utf-8');
      return bytes;
    };
  },
});

/**
 * The merchant to quote for.
 * @throws ApiError when it does not exist for the caller, or its set-up is incomplete
 */
function usable(found: CatalogueMerchant | undefined, merchantId: string, caller: Caller): Merchant {
  if (found === undefined || (found.onlyFor !== null && !found.onlyFor.has(caller.partnerId)))
    throw refused('MERCHANT_NOT_FOUND', merchantId);
  if ('missingFields' in found.setup)
    throw refused('MERCHANT_CONFIGURATION_INCOMPLETE', merchantId, found.setup.missingFields);
  return found.setup.merchant;
}

/** The limits are those of credit products in general, not of the merchant's own range. */
function checkLimits(loan: QuoteRequestBody['loan_amount']): void {
  if (loan.pence < LOWEST_LOAN_PENCE) throw refused('AMOUNT_TOO_LOW', loan.pounds);
  if (loan.pence > HIGHEST_LOAN_PENCE) throw refused('AMOUNT_TOO_HIGH', loan.pounds);
}

const NOT_AUTHORISED_NOTICE = {
  code: 'MERCHANT_FCA_NOT_AUTHORISED',
  message: 'The merchant is not authorised to communicate regulated credit promotions.',
};

function quoteToWire(quote: Quote, quoteId: string, merchantReference: string | null): QuoteResponseBody {
  return {
    success: true,
    data: {
      service_quote_id: quoteId,
      merchant_reference: merchantReference,
      summary: { display: quote.display, finance_offer_summary: quote.summaryHtml },
      products: quote.shown.map(productToWire),
      ...(quote.withheldAsNotAuthorised && { products_notice: NOT_AUTHORISED_NOTICE }),
      ...(quote.depositAdjustment && { deposit_adjustment: adjustmentToWire(quote.depositAdjustment) }),
    },
  };
}

function productToWire(priced: PricedProduct): ProductItem {
  const { product, initialPaymentDue } = priced;
  const rateType = product.rateType === 'fixed' ? 'Fixed' : 'Variable';
  return {
    lender: product.lenderName,
    credit_product: product.creditProduct,
    purchase_price: formatPence(priced.purchasePricePence),
    customer_deposit: formatPence(priced.depositPence),
    loan_amount: formatPence(priced.loanPence),
    first_payment_type: product.firstPaymentType,
    first_payment_amount: formatPence(priced.firstPaymentAmountPence),
    initial_payment_due_value: initialPaymentDue.value,
    initial_payment_due_unit: initialPaymentDue.unit,
    apr: `${formatApr(product.aprBasisPoints)} ${rateType}`,
    annual_interest_rate: formatRate(priced.annualRateBasisPoints),
    number_of_repayments: product.numberOfRepayments,
    monthly_repayment: formatPence(priced.monthlyRepaymentPence),
    cost_of_credit: formatPence(priced.costOfCreditPence),
    total_amount_payable_excluding_deposit: formatPence(priced.totalPayablePence),
    merchant_finance_url: priced.financeUrl,
  };
}

function adjustmentToWire(adjustment: DepositAdjustment) {
  return {
    requested_deposit: formatPence(adjustment.requestedDepositPence),
    corrected_deposit: formatPence(adjustment.correctedDepositPence),
    adjustment_reason: adjustment.reason,
    affected_products: adjustment.affectedProducts.map(({ product, depositPence, loanPence }) => ({
      lender: product.lenderName,
      credit_product: product.creditProduct,
      customer_deposit: formatPence(depositPence),
      loan_amount: formatPence(loanPence),
    })),
  };
}

/** Stored of every product that fitted, because an application may later be opened for each. */
function fittedProducts(quote: Quote): FittedProduct[] {
  return quote.fitted.map((priced) => ({
    productId: priced.product.productId,
    version: priced.product.version,
    lender: priced.product.lender,
    creditProduct: priced.product.creditProduct,
    depositPence: priced.depositPence,
    loanPence: priced.loanPence,
    monthlyRepaymentPence: priced.monthlyRepaymentPence,
    totalPayablePence: priced.totalPayablePence,
  }));
}
