import type { Command } from 'commander';
import { sql } from 'drizzle-orm';
import type { DbOrTransaction } from '../db/postgres/connect';
import { Refused } from '../db/refused';
import { IDS, idKindOf, type IdKind, type IdWords } from './arguments';

/** Where each kind of id is known from, with the id as `$`. */
const KNOWN: Readonly<Record<IdKind, string>> = {
  partner: 'partners where partner_id = $',
  merchant: 'merchants where merchant_id = $',
  product: 'products where product_id = $',
  lender: 'lenders where lender = $',
  key: 'api_keys where key_id = $',
  serviceKey: 'service_keys where key_id = $',
  endpoint: 'webhook_endpoints where endpoint_id = $',
  quote: 'quotes where quote_id = $',
  application: 'credit_applications where application_id = $',
  notification: 'notifications where notification_id = $',
  recovery: 'recoveries where recovery_id = $',
  change: 'change_log where change_id = $::bigint',
  event: 'operator_events where event_id = $::bigint',
  subject: 'change_log where subject = $',
  actor: `(select actor as id from change_log union all select key_id from api_keys union all select key_id from service_keys)
    known where id = $`,
};

/**
 * Looks up every id that a command was given: what nothing has reads as good news in a list ("None.").
 * @throws Refused naming those that do not exist.
 */
export async function checkIds(db: DbOrTransaction, command: Command): Promise<void> {
  const given = [
    ...command.options.map((option) => [option.parseArg, command.getOptionValue(option.attributeName())]),
    ...command.registeredArguments.map((argument, at) => [argument.parseArg, command.processedArgs[at]]),
  ].flatMap(([parse, value]) => {
    const kind = idKindOf(parse);
    return kind === null || value === undefined ? [] : [value].flat().map((id) => ({ kind, id: String(id) }));
  });
  if (given.length === 0) return;
  const looks = given.map(({ kind, id }, at) => {
    const anywhere = kindsOf(kind, id).map((one) => {
      const [before = '', after = ''] = KNOWN[one].split('$');
      return sql`exists (select from ${sql.raw(before)}${id}${sql.raw(after)})`;
    });
    return sql`select ${at}::int as at where not (${sql.join(anywhere, sql` or `)})`;
  });
  const missing = await db.execute<{ at: number }>(sql.join(looks, sql` union all `));
  if (missing.length === 0) return;
  const said = missing.map(({ at }) => {
    const { kind = 'partner', id = '' } = given[at] ?? {};
    const { noun, hint = '' }: IdWords = IDS[kind];
    return `${noun} ${id} does not exist${hint}.`;
  });
  throw new Refused('not_found', said.join(' '));
}

/** A subject of changes is known from the log; or it is a thing that has never been changed. */
const kindsOf = (kind: IdKind, id: string): readonly IdKind[] =>
  kind === 'subject' ? [kind, ...THINGS.filter((one) => IDS[one].form.test(id))] : [kind];

const THINGS = (Object.keys(IDS) as IdKind[]).filter(
  (kind) => !['change', 'event', 'subject', 'actor'].includes(kind),
);
