import { formatPence, parsePence } from '../../domain/money';
import { askPartnerApi, type PartnerSettings } from '../partner-api';

export interface Exchange {
  readonly request: unknown;
  /** HTTP status. */
  readonly status: number;
  readonly answer: unknown;
}

/**
 * Asks what finance to offer for a basket. Price and deposit are pounds as typed; what is no amount is sent as it is, so that
 * the API says what is wrong with it.
 */
export async function askForQuote(
  settings: PartnerSettings,
  basket: { readonly merchantId: string; readonly price: string; readonly deposit: string },
): Promise<Exchange> {
  const price = parsePence(basket.price);
  const deposit = parsePence(basket.deposit === '' ? '0' : basket.deposit);
  const whole = price.ok && deposit.ok && price.pence >= deposit.pence;
  const body = {
    merchant_id: basket.merchantId,
    partner_id: settings.partnerId,
    loan_amount: whole ? formatPence(price.pence - deposit.pence) : basket.price,
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
