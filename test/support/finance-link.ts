import { linkParameters } from '../../domain/finance-link';
import { parsePence } from '../../domain/money';

/**
 * Reads a finance link: of a parameter given twice the first counts; `service_quote_id` goes before the older
 * `quote_id`. A part that is missing or cannot be read is null.
 */
export function readFinanceLink(link: string) {
  const { sent } = linkParameters(link);
  const pence = (text: string | null): number | null => {
    const parsed = parsePence(text ?? '');
    return parsed.ok ? parsed.pence : null;
  };
  return {
    quoteId: sent.service_quote_id ?? sent.quote_id,
    loanPence: pence(sent.loan_amount),
    depositPence: pence(sent.customer_deposit),
    creditProduct: sent.credit_product,
    merchantReference: sent.merchant_reference,
  };
}

/** The link of a quote's summary, as a browser reads it. */
export const summaryLink = (data: { readonly summary: { readonly finance_offer_summary: string } }): string =>
  /href="([^"]*)"/.exec(data.summary.finance_offer_summary)?.[1]?.replaceAll('&amp;', '&') ?? '';
