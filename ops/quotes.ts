import type { Command } from 'commander';
import { findQuote, listQuotes, type QuoteSummary } from '../db/quotes/read';
import { formatPence } from '../domain/money';
import { inPages, paged, spanOf, withSpan, type Page } from './arguments';
import { group, handle, type OpsDeps } from './call';
import { versionView } from './catalogue-view';
import { idOf, withId } from './ids';
import { existing, facts, listed, snakeCased } from './output';

const EXAMPLES = `
Examples:
  ops quotes show qte_01K…                        request, answer, and the terms behind it
  ops quotes list --merchant M123456 --since 1d
  ops quotes list --merchant-reference ORDER-1042`;

const LONGEST_SPAN_DAYS = 400;
const DEFAULT_DAYS = 7;
/** An index of references would be written with each quote, so there is none: two months are read instead. */
const DEFAULT_DAYS_OF_REFERENCE = 60;

export function addQuoteCommands(program: Command, deps: OpsDeps): void {
  const quotes = group(program, 'quotes', 'Quotes as they were answered.', EXAMPLES);

  const show = withId(quotes.command('show'), 'quote', '<quote-id>').description(
    'One quote: request, answer, and the versions of the products that fitted.',
  );
  handle(show, deps, async ({ db }, quoteId = '') => {
    const found = existing(await findQuote(db, quoteId), `Quote ${quoteId}`);
    const { response, fitted, versions, ...summary } = found;
    const terms = listed(
      versions,
      ({ productId: product_id, version, definition }) => ({
        product_id,
        version,
        ...versionView(definition),
      }),
      {
        product: 'product_id',
        version: 'version',
        lender: 'lender',
        'credit product': 'credit_product',
        repayments: 'number_of_repayments',
        APR: ({ definition }) => `${versionView(definition).apr}%`,
      },
    );
    return {
      json: { ...view(summary), response, fitted, versions: terms.json },
      text: (most) =>
        [
          facts(view(summary)),
          `Products that fitted, with the version they were priced with:\n${terms.text(most)}`,
          `Answer:\n${JSON.stringify(response, null, 2)}`,
        ].join('\n\n'),
    };
  });

  const list = quotes
    .command('list')
    .description('Recent quotes, newest first.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .option('--merchant <merchant>', 'of this merchant only', idOf('merchant'))
    .option('--merchant-reference <reference>', "with this reference of the partner's only");
  const limits = `at most ${LONGEST_SPAN_DAYS}d; default: ${DEFAULT_DAYS}d, with --merchant-reference ${DEFAULT_DAYS_OF_REFERENCE}d`;
  withSpan(list, 'given from then on', limits);
  handle<Page>(inPages(list, 'quote'), deps, async (call) => {
    const { partner: partnerId, merchant: merchantId, merchantReference, after, limit } = call.options;
    const byDefault = merchantReference === undefined ? DEFAULT_DAYS : DEFAULT_DAYS_OF_REFERENCE;
    const span = await spanOf(call, LONGEST_SPAN_DAYS, byDefault);
    const filter = { partnerId, merchantId, merchantReference, ...span, after, limit };
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
    return paged(call, answer, found, ({ quoteId }) => quoteId);
  });
}

const view = ({ quoteId, loanPence, depositPence, ...rest }: QuoteSummary) => ({
  service_quote_id: quoteId,
  ...snakeCased(rest),
  loan_amount: formatPence(loanPence),
  customer_deposit: depositPence === null ? null : formatPence(depositPence),
});
