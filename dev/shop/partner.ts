import { formatPence, parsePence } from '../../domain/money';
import { askPartnerApi, type PartnerSettings } from '../partner-api';

export interface Exchange {
  /** Null: nothing was asked. */
  readonly request: unknown;
  /** HTTP status. */
  readonly status: number | null;
  readonly answer: unknown;
  /** What is wrong with the basket, for the shopper. */
  readonly fault?: string;
}

/**
 * Asks what finance to offer for a basket. Price and deposit are pounds as typed; what is no amount is sent as it is, so that
 * the API says what is wrong with it. The API takes the sum of loan and deposit as the price: a deposit that leaves no loan must
 * not be sent, or the offer would be for another price than the shop's.
 */
export async function askForQuote(
  settings: PartnerSettings,
  basket: { readonly merchantId: string; readonly price: string; readonly deposit: string },
): Promise<Exchange> {
  const price = parsePence(basket.price);
  const deposit = parsePence(basket.deposit === '' ? '0' : basket.deposit);
  const loanPence = price.ok && deposit.ok ? price.pence - deposit.pence : null;
  if (loanPence !== null && loanPence <= 0)
    return { request: null, status: null, answer: null, fault: 'The deposit must be less than the price.' };
  const body = {
    merchant_id: basket.merchantId,
    partner_id: settings.partnerId,
    loan_amount: loanPence === null ? basket.price : formatPence(loanPence),
    customer_deposit: deposit.ok ? formatPence(deposit.pence) : basket.deposit,
    merchant_finance_url: 'https://shop.example/finance',
    merchant_reference: 'SOFA-1',
  };
  const { status, answer } = await askPartnerApi(settings, 'POST', '/v1/finance-quote', body);
  return { request: body, status, answer };
}

/** `POST /v1/notifications/test`. */
export async function sendTestNotification(settings: PartnerSettings): Promise<Exchange> {
  const { status, answer } = await askPartnerApi(settings, 'POST', '/v1/notifications/test');
  return { request: null, status, answer };
}
