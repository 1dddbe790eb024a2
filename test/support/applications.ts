import { ulid } from 'ulid';
import { applicationEventSchema, applicationEventText } from '../../contracts/webhook-event';
import type { Database } from '../../db/postgres/connect';
import { findApplication, type Application } from '../../db/applications/applications';
import { createApplication, type NewApplication } from '../../db/applications/create';
import { insertQuotes, type QuoteRow } from '../../db/quotes/store';
import { recordLenderEvent, type NewLenderEvent } from '../../db/applications/lender-events';

/** A quote for £900.00 and a deposit of £100.00 that two products of a lender fitted, one of them with a higher deposit. */
export async function storeQuote(
  { sql }: Database,
  {
    lender = 'lender_a',
    ...fields
  }: Partial<QuoteRow> & { readonly partnerId: string; readonly lender?: string },
): Promise<QuoteRow> {
  const fitted = (creditProduct: string, loanPence: number, depositPence: number) => ({
    productId: `prd_${creditProduct}`,
    version: 1,
    lender,
    creditProduct,
    loanPence,
    depositPence,
    monthlyRepaymentPence: 7_891,
    totalPayablePence: 94_692,
  });
  const quote: QuoteRow = {
    quoteId: `qte_${ulid()}`,
    keyId: 'key_test',
    environment: 'sandbox',
    merchantId: 'M000001',
    loanPence: 90_000,
    depositPence: 10_000,
    usedDepositPence: 10_000,
    merchantFinanceUrl: 'https://shop.example/finance',
    merchantReference: 'basket 2041',
    requestId: 'rq_test',
    response: '{"data":{}}',
    fitted: [fitted('Classic 12', 90_000, 10_000), fitted('Half down', 50_000, 50_000)],
    ...fields,
  };
  await insertQuotes(sql, [quote]);
  return quote;
}

let references = 0;

/** Eight alphanumerics that no other test has. */
export const newReference = () => `REF${String((references += 1)).padStart(5, '0')}`;

/** What a lender's integration asks for, by default of `lender_a` in the sandbox, with amounts of `storeQuote`. */
export function newApplication(quoteId: string, fields: Partial<NewApplication> = {}): NewApplication {
  const { lender = 'lender_a' } = fields;
  return {
    lender,
    lenderReference: newReference(),
    quoteId,
    loanPence: 90_000,
    depositPence: 10_000,
    creditProduct: 'Classic 12',
    merchantReference: null,
    service: { keyId: 'svk_test', lender, environment: 'sandbox' },
    requestId: 'rq_test',
    ...fields,
  };
}

export async function openApplication(
  database: Database,
  quote: Parameters<typeof storeQuote>[1],
  fields: Partial<NewApplication> = {},
): Promise<Application> {
  const { lender = 'lender_a' } = fields;
  const { environment = 'sandbox' } = quote;
  const { quoteId } = await storeQuote(database, { lender, ...quote });
  const service = { keyId: 'svk_test', lender, environment };
  const wanted = newApplication(quoteId, { service, ...fields });
  const answer = await createApplication(database.db, wanted, applicationEventText);
  if (answer.kind !== 'created') throw new Error(answer.kind);
  return answer.application;
}

/** Records what the lender says of an application, under a key of that lender and its environment. */
export async function tell(
  { db }: Pick<Database, 'db'>,
  applicationId: string,
  status: NewLenderEvent['status'],
  { lenderEventId = `le-${ulid()}`, occurredAt = new Date() }: Partial<NewLenderEvent> = {},
) {
  const story = await findApplication(db, applicationId, 'all');
  const { lender, environment } = story?.application ?? { lender: 'lender_a', environment: 'sandbox' };
  const service = { keyId: 'svk_test', lender, environment };
  return recordLenderEvent(
    db,
    { applicationId, lenderEventId, status, occurredAt, service, requestId: 'rq_test' },
    { write: applicationEventText, waitSeconds: 600 },
  );
}

/** The events of an application that were stored for its partner, in order. */
export async function eventsOf({ sql }: Pick<Database, 'sql'>, applicationId: string) {
  const rows = await sql<{ body: string }[]>`
    select body from notifications_now where application_id = ${applicationId} order by sequence`;
  return rows.map(({ body }) => applicationEventSchema.strict().parse(JSON.parse(body)));
}
