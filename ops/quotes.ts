import type { Command } from 'commander';
import type { QuoteResponseBody } from '../contracts/quote-response';
import type { FittedProduct } from '../db/quotes/store';
import { findQuote, listQuotes, type QuoteSummary, type StoredQuote } from '../db/quotes/read';
import type { ProductDefinition } from '../db/catalogue/product-row';
import { existingProduct, loadProductsOf, loadVersions } from '../db/catalogue/products';
import type { DbOrTransaction } from '../db/postgres/connect';
import { Refused } from '../db/refused';
import { formatPence } from '../domain/money';
import { ukDay } from '../domain/product';
import { maximumDeposit, misfit, productDeposit } from '../domain/quote';
import { inPages, paged, spanOf, wholeNumber, withSpan, type Page } from './arguments';
import { group, handle, type OpsDeps } from './call';
import { versionView } from './catalogue-view';
import { idOf, withId } from './ids';
import { existing, facts, listed, printable, snakeCased } from './output';

const EXAMPLES = `
  ops quotes show qte_01K…                        request, answer, the terms behind it, and what was left out
  ops quotes list --merchant M123456 --since 1d
  ops quotes list --merchant M123456 --product "Classic credit 12 months" --version 3     who saw this price?
  ops quotes list --merchant-reference ORDER-1042`;

const LONGEST_SPAN_DAYS = 400;
const DEFAULT_DAYS = 7;
/** An index of references would be written with each quote, so there is none: two months are read instead. */
const DEFAULT_DAYS_OF_REFERENCE = 60;

export function addQuoteCommands(program: Command, deps: OpsDeps): void {
  const quotes = group(program, 'quotes', 'Quotes as they were answered.', EXAMPLES);

  const show = withId(quotes.command('show'), 'quote', '<quote-id>').description(
    'One quote: request, answer, the versions of the products that fitted, and why others did not.',
  );
  handle(show, deps, async ({ db }, quoteId = '') => {
    const found = existing(await findQuote(db, quoteId), `Quote ${quoteId}`);
    const { response, fitted, versions, ...summary } = found;
    const leftOut = listed(await findLeftOut(db, found), snakeCased, {
      'left out': 'credit_product',
      version: 'version',
      why: 'why',
    });
    const terms = ({ productId, version }: FittedProduct) => {
      const stored = versions.find((one) => one.productId === productId && one.version === version);
      return stored && versionView(stored.definition);
    };
    const prices = listed(fitted, snakeCased, {
      'credit product': 'credit_product',
      version: 'version',
      APR: (one) => terms(one) && `${terms(one)?.apr}%`,
      repayments: (one) => terms(one)?.number_of_repayments,
      'a month': ({ monthlyRepaymentPence }) => formatPence(monthlyRepaymentPence),
      loan: ({ loanPence }) => formatPence(loanPence),
      deposit: ({ depositPence }) => formatPence(depositPence),
      'to repay': ({ totalPayablePence }) => formatPence(totalPayablePence),
      lender: 'lender',
    });
    const versionsView = versions.map(({ productId, version, definition }) => ({
      product_id: productId,
      version,
      ...versionView(definition),
    }));
    return {
      json: { ...view(summary), response, fitted, versions: versionsView, left_out: leftOut.json },
      text: (most) =>
        [
          `${shownText(response)}\n${prices.text(most)}`,
          ...(leftOut.json.length > 0 ? [leftOut.text(most)] : []),
          facts(view(summary)),
          'The whole answer, and the terms of these versions: --json.',
        ].join('\n\n'),
    };
  });

  const list = quotes
    .command('list')
    .description('Recent quotes, newest first.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .option('--merchant <merchant>', 'of this merchant only', idOf('merchant'))
    .option('--merchant-reference <reference>', "with this reference of the partner's only")
    .option('--product <credit-product>', 'that this product of --merchant fitted only')
    .option('--version <n>', 'priced with this version of --product only', wholeNumber(1, 1_000_000));
  const limits = `at most ${LONGEST_SPAN_DAYS}d; default: ${DEFAULT_DAYS}d, with --merchant-reference ${DEFAULT_DAYS_OF_REFERENCE}d`;
  withSpan(list, 'given from then on', limits);
  handle<Page & { product?: string; version?: number }>(inPages(list, 'quote'), deps, async (call) => {
    const { partner: partnerId, merchant: merchantId, merchantReference, after, limit } = call.options;
    const { product: creditProduct, version } = call.options;
    if (creditProduct === undefined ? version !== undefined : merchantId === undefined)
      throw new Refused('invalid', 'Say --merchant, --product and --version, or --merchant and --product.');
    const product =
      creditProduct === undefined
        ? undefined
        : { ...(await existingProduct(call.db, merchantId ?? '', creditProduct)), version };
    const byDefault = merchantReference === undefined ? DEFAULT_DAYS : DEFAULT_DAYS_OF_REFERENCE;
    const span = await spanOf(call, LONGEST_SPAN_DAYS, byDefault);
    const filter = { partnerId, merchantId, merchantReference, product, ...span, after, limit };
    const found = await listQuotes(call.db, filter);
    if (found.length === 0) return { json: [], text: `None from ${span.since} on (--since).` };
    const answer = listed(found, view, {
      quote: 'service_quote_id',
      when: 'created_at',
      partner: 'partner_id',
      env: 'environment',
      merchant: 'merchant_id',
      loan: 'loan_amount',
      deposit: 'customer_deposit',
      'merchant reference': 'merchant_reference',
    });
    return paged(call, answer, found.at(-1)?.quoteId);
  });
}

const view = ({ quoteId, loanPence, depositPence, usedDepositPence, ...rest }: QuoteSummary) => ({
  service_quote_id: quoteId,
  ...snakeCased(rest),
  loan_amount: formatPence(loanPence),
  customer_deposit: depositPence === null ? null : formatPence(depositPence),
  used_deposit: usedDepositPence === null ? null : formatPence(usedDepositPence),
});

/** Products of the merchant at the time of the quote that did not fit, and why, by the terms that they had then. */
async function findLeftOut(db: DbOrTransaction, quote: StoredQuote) {
  const { createdAt, loanPence, depositPence: sent, usedDepositPence } = quote;
  const merchantDepositPence = usedDepositPence ?? sent ?? 0;
  const pricePence = loanPence + (sent ?? 0);
  const fitted = new Set(quote.fitted.map(({ productId }) => productId));
  const others = (await loadProductsOf(db, [quote.merchantId])).filter(
    ({ productId }) => !fitted.has(productId),
  );
  const ids = others.map(({ productId }) => productId);
  // Newest first.
  const versions = (await loadVersions(db, ids)).filter((one) => one.createdAt <= createdAt);
  return others.flatMap(({ productId, creditProduct }) => {
    const then = versions.find((one) => one.productId === productId);
    if (then === undefined) return [];
    const why = whyLeftOut(then.definition, ukDay(createdAt), pricePence, merchantDepositPence);
    return [{ creditProduct, version: then.version, why }];
  });
}

function whyLeftOut(
  terms: ProductDefinition,
  day: string,
  pricePence: number,
  merchantDepositPence: number,
): string {
  if (terms.validFrom !== null && day < terms.validFrom) return `valid from ${terms.validFrom} on`;
  if (terms.validTo !== null && day > terms.validTo) return `valid until ${terms.validTo}`;
  const depositPence = productDeposit(terms, pricePence, merchantDepositPence);
  const loan = `its loan of ${formatPence(pricePence - depositPence)}`;
  switch (misfit(terms, pricePence, depositPence)) {
    case 'deposit_above_maximum':
      return `its deposit of ${formatPence(depositPence)} is above the maximum of ${formatPence(maximumDeposit(pricePence, terms.depositMax))}`;
    case 'loan_below_minimum':
      return `${loan} is below the minimum of ${formatPence(terms.minLoanPence)}`;
    case 'loan_above_maximum':
      return `${loan} is above the maximum of ${formatPence(terms.maxLoanPence)}`;
    case null:
      // Its terms fit, and whether it is active is not part of them.
      return 'inactive then';
  }
}

/** What the answer shows, without markup, and whether the list of products was in it. */
function shownText(response: unknown): string {
  const { data } = response as { readonly data?: Partial<QuoteResponseBody['data']> };
  const { display = false, finance_offer_summary: html = '' } = data?.summary ?? {};
  const plain = html.replaceAll(/<[^>]*>/g, '');
  const summary = display ? `The answer shows: ${printable(plain)}` : 'The answer shows no finance.';
  const list = data?.products?.length ? 'Its product list:' : 'It has no product list. What fitted:';
  return `${summary}\n${list}`;
}
