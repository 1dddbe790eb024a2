import type { FastifyInstance } from 'fastify';
import { quoteRequestSchema, type QuoteRequestBody } from '../../contracts/quote-request';
import { quoteResponseSchema, type QuoteResponseBody } from '../../contracts/quote-response';
import { bodyValidator } from '../../contracts/validate';
import type { QuoteRow } from '../../db/quotes/insert';
import {
  completeMerchant,
  type Merchant,
  HIGHEST_LOAN_PENCE,
  LOWEST_LOAN_PENCE,
  ukDay,
} from '../../domain/product';
import { priceQuote } from '../../domain/quote';
import { TEST_MERCHANTS } from '../../domain/test-merchants';
import type { Catalogue } from '../catalogue/catalogue';
import type { CatalogueMerchant } from '../catalogue/merchant-memory';
import { ApiError } from '../errors';
import { bodyOf } from '../plugins/body';
import type { Caller } from '../plugins/authenticate';
import { fittedProducts, quoteToWire } from '../quotes/to-wire';
import { serializer } from '../serializer';

export interface GetFinanceQuoteDeps {
  readonly catalogue: Pick<Catalogue, 'findMerchant'>;
  /** Stores a quote durably; resolves after the commit. */
  readonly storeQuote: (row: QuoteRow) => Promise<void>;
  readonly now: () => Date;
  /** `qte_` and a ULID of the moment. */
  readonly newQuoteId: (at: Date) => string;
}

/** `POST /v1/finance-quote`, for the keyed part of the API. */
export function getFinanceQuote(app: FastifyInstance, deps: GetFinanceQuoteDeps): void {
  const { storeQuote, now, newQuoteId } = deps;
  // Designated test merchants exist for every key and are never read from anywhere.
  const find: Catalogue['findMerchant'] = (merchantId) => {
    const designated = TEST_MERCHANTS.get(merchantId);
    return designated
      ? { merchantId, onlyFor: null, setup: completeMerchant(designated.merchant) }
      : deps.catalogue.findMerchant(merchantId);
  };
  const validate = bodyValidator(quoteRequestSchema);
  const serialize = serializer<QuoteResponseBody>(quoteResponseSchema);

  app.post('/v1/finance-quote', async (request, reply) => {
    const body = bodyOf(validate, request.body);
    const { caller } = request;
    if (body.partner_id !== caller.partnerId) {
      throw new ApiError('INVALID_REQUEST', 'partner_id does not match the API key.', {
        field: 'partner_id',
      });
    }
    const found = find(body.merchant_id);
    const merchant = usable(found instanceof Promise ? await found : found, body.merchant_id, caller);
    checkLimits(body.loan_amount);

    const at = now();
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
    // As bytes: given text, its length would be measured first and its bytes made twice.
    const bytes = Buffer.from(response);
    // Durably stored before it is answered: an id that a partner holds always has its row.
    await storeQuote({
      quoteId,
      partnerId: caller.partnerId,
      keyId: caller.keyId,
      environment: caller.environment,
      merchantId: merchant.merchantId,
      loanPence: body.loan_amount.pence,
      depositPence: body.customer_deposit?.pence ?? null,
      merchantFinanceUrl: body.merchant_finance_url,
      merchantReference: body.merchant_reference,
      requestId: request.id,
      response,
      fitted: fittedProducts(quote),
    });
    void reply.type('application/json; charset=utf-8');
    return bytes;
  });
}

/** The merchant to quote for. @throws ApiError when it does not exist for the caller, or its set-up is incomplete */
function usable(found: CatalogueMerchant | undefined, merchantId: string, caller: Caller): Merchant {
  if (found === undefined || (found.onlyFor !== null && !found.onlyFor.has(caller.partnerId))) {
    throw new ApiError('MERCHANT_NOT_FOUND', 'The merchant does not exist.', { merchant_id: merchantId });
  }
  if ('missingFields' in found.setup) {
    throw new ApiError(
      'MERCHANT_CONFIGURATION_INCOMPLETE',
      "The merchant's set-up is incomplete. Retrying does not help until the service completes it.",
      { merchant_id: merchantId, missing_fields: found.setup.missingFields },
    );
  }
  return found.setup.merchant;
}

/** The limits are those of credit products at large, not the merchant's own range. */
function checkLimits(loan: QuoteRequestBody['loan_amount']): void {
  if (loan.pence < LOWEST_LOAN_PENCE) {
    throw new ApiError('AMOUNT_TOO_LOW', 'loan_amount is below the minimum of £10.00.', {
      provided_loan_amount: loan.pounds,
      minimum_required: LOWEST_LOAN_PENCE / 100,
    });
  }
  if (loan.pence > HIGHEST_LOAN_PENCE) {
    throw new ApiError('AMOUNT_TOO_HIGH', 'loan_amount is above the maximum of £2,000,000.00.', {
      provided_loan_amount: loan.pounds,
      maximum_allowed: HIGHEST_LOAN_PENCE / 100,
    });
  }
}
