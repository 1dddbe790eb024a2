import type { Command } from 'commander';
import { findQuote, listQuotes, type QuoteSummary, type StoredQuote } from '../db/quotes/read';
import { Refused } from '../db/refused';
import { formatPence } from '../domain/money';
import { wholeNumber, idOf } from './arguments';
import { handle, type OpsDeps } from './call';
import { facts, listed, snakeCased, table, type Answer } from './output';
import { inPages, paged, type Page } from './paging';
import { versionView } from './catalogue-view';

const EXAMPLES = `
Examples:
  ops quotes show qte_01K…                        request, answer, and the terms behind it
  ops quotes list --merchant M123456 --days 1
  ops quotes list --merchant-reference ORDER-1042`;

/** Quotes are read back to front through their ids, so the span bounds the work. */
const LONGEST_SPAN_DAYS = 400;
const DEFAULT_DAYS = 7;
/** Quotes have no index of references, which would be written with each: what is read is two months. */
const DEFAULT_DAYS_OF_REFERENCE = 60;

interface ListOptions extends Page {
  readonly merchant?: string;
  readonly merchantReference?: string;
  readonly days?: number;
}

/** `ops quotes …` */
export function addQuoteCommands(program: Command, deps: OpsDeps): void {
  const quotes = program
    .command('quotes')
    .description('Quotes as they were answered.')
    .addHelpText('after', EXAMPLES);

  const show = quotes
    .command('show')
    .argument('<quote-id>', '', idOf('quote'))
    .description('One quote: request, answer, and the versions of the products that fitted.');
  handle(show, deps, async ({ db }, quoteId = '') => {
    const quote = await findQuote(db, quoteId);
    if (quote === null)
      throw new Refused('not_found', `Quote ${quoteId} does not exist, or its month has been dropped.`);
    return fullAnswer(quote);
  });

  const list = quotes
    .command('list')
    .description('Recent quotes, newest first.')
    .option('--partner <partner>', 'of this partner only', idOf('partner'))
    .option('--merchant <merchant>', 'of this merchant only', idOf('merchant'))
    .option('--merchant-reference <reference>', "with this reference of the partner's only")
    .option(
      '--days <n>',
      `how far back, 1 to ${LONGEST_SPAN_DAYS}; default: ${DEFAULT_DAYS}, with --merchant-reference ${DEFAULT_DAYS_OF_REFERENCE}`,
      wholeNumber(1, LONGEST_SPAN_DAYS),
    );
  handle<ListOptions>(inPages(list, 'quote'), deps, async (call) => {
    const { partner: partnerId, merchant: merchantId, merchantReference, after, limit } = call.options;
    const byDefault = merchantReference === undefined ? DEFAULT_DAYS : DEFAULT_DAYS_OF_REFERENCE;
    const days = call.options.days ?? byDefault;
    const filter = { partnerId, merchantId, merchantReference, days, after, limit };
    const found = await listQuotes(call.db, filter);
    if (found.length === 0) return { json: [], text: `None in the last ${days} days (--days).` };
    const answer = listed(found, view, {
      quote: 'service_quote_id',
      when: 'created_at',
      partner: 'partner_id',
      env: 'environment',
      merchant: 'merchant_id',
      loan: 'loan_amount',
      deposit: 'customer_deposit',
      reference: 'merchant_reference',
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

function fullAnswer({ response, fitted, versions, ...summary }: StoredQuote): Answer {
  const terms = versions.map(({ productId, version, definition }) => ({
    product_id: productId,
    version,
    ...versionView(definition),
  }));
  const text = [
    facts(Object.entries(view(summary))),
    '',
    'Products that fitted, with the version they were priced with:',
    table(
      ['product', 'version', 'lender', 'credit product', 'repayments', 'APR'],
      terms.map((one) => [
        one.product_id,
        one.version,
        one.lender,
        one.credit_product,
        one.number_of_repayments,
        `${one.apr}%`,
      ]),
    ),
    '',
    'Answer:',
    JSON.stringify(response, null, 2),
  ].join('\n');
  return { json: { ...view(summary), response, fitted, versions: terms }, text };
}
