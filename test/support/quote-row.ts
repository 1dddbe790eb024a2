import type { QuoteRow } from '../../db/quotes/store';

/** A quote as it is stored, with what a test says otherwise. @param number makes its id */
export function quoteRow(number: number, fields: Partial<QuoteRow> = {}): QuoteRow {
  return {
    quoteId: `qte_${String(number).padStart(26, '0')}`,
    partnerId: 'P100001',
    keyId: 'key_1',
    environment: 'sandbox',
    merchantId: 'M100001',
    loanPence: 120_000,
    depositPence: null,
    merchantFinanceUrl: 'https://shop.example/finance',
    merchantReference: 'basket 1',
    requestId: 'rq_1',
    response: '{"success":true}',
    fitted: [],
    ...fields,
  };
}
