/** The quote that benches ask for. */
export const quoteBody = (partnerId: string, merchantId: string): string =>
  JSON.stringify({
    merchant_id: merchantId,
    partner_id: partnerId,
    loan_amount: '900.00',
    customer_deposit: '100.00',
    merchant_finance_url: 'https://shop.example/finance?basket=1',
    merchant_reference: 'basket 2041',
  });
