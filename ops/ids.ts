import { InvalidArgumentError, type Command } from 'commander';
import { sql } from 'drizzle-orm';
import { MERCHANT_ID } from '../contracts/quote-request';
import type { DbOrTransaction } from '../db/postgres/connect';
import { Refused } from '../db/refused';

/** @param known where such things are stored, with the id as `$` */
function kind(noun: string, like: string, form: RegExp, known: string, hint = '') {
  return { noun, like, form, known, hint };
}
type IdKind = Readonly<ReturnType<typeof kind>>;
const prefixed = (noun: string, prefix: string, known: string, hint?: string) =>
  kind(noun, `${prefix}_01K…`, new RegExp(`^${prefix}_\\w{1,40}$`), known, hint);

/** The number of a row that has one instead of an id. */
const ROW_NUMBER = /^[1-9]\d{0,8}$/;
const DROPPED = ', or its month has been dropped';
const LENDERS = ': ops lenders list shows those that do';
const UNCHANGED = ', and no change is about it';

const SUBJECTS = {
  partner: kind('Partner', 'P100001', /^P\d{6}$/, 'partners where partner_id = $'),
  merchant: kind('Merchant', 'M123456', MERCHANT_ID, 'merchants where merchant_id = $'),
  product: prefixed('Product', 'prd', 'products where product_id = $'),
  lender: kind('Lender', 'lender_a', /^[a-z][a-z0-9_]{1,31}$/, 'lenders where lender = $', LENDERS),
  key: prefixed('Key', 'key', 'api_keys where key_id = $'),
  serviceKey: prefixed('Service key', 'svk', 'service_keys where key_id = $'),
  endpoint: prefixed('Endpoint', 'whe', 'webhook_endpoints where endpoint_id = $'),
  quote: prefixed('Quote', 'qte', 'quotes where quote_id = $', DROPPED),
  application: prefixed('Application', 'app', 'credit_applications where application_id = $'),
  notification: prefixed('Notification', 'ntf', 'notifications where notification_id = $', DROPPED),
  recovery: prefixed('Recovery', 'rcv', 'recoveries where recovery_id = $'),
};

const ACTORS = `(select actor as id from change_log union all select key_id from api_keys
  union all select key_id from service_keys) known where id = $`;

export const IDS = {
  ...SUBJECTS,
  change: kind('Change', '4711', ROW_NUMBER, 'change_log where change_id = $::bigint'),
  event: kind('Event', '4711', ROW_NUMBER, 'operator_events where event_id = $::bigint'),
  /** Of a change: any of the above, a build, a month. */
  subject: kind('Subject', 'M123456', /^\S{1,120}$/, 'change_log where subject = $', UNCHANGED),
  /** Who made a change: a user or a key. */
  actor: kind('User or key', 'jane', /^\S.{0,119}$/, ACTORS, ', or has changed nothing'),
};

export type IdName = keyof typeof IDS;

/** The id of something that is to be created: only its form is checked. */
export const newIdOf = (name: IdName) => (text: string) => {
  const { noun, like, form } = IDS[name];
  if (form.test(text)) return text;
  throw new InvalidArgumentError(`It must be an id such as ${like} (${noun.toLowerCase()}).`);
};

/** Parsers of ids, which `checkIds` looks up before the command runs. */
const parsers = new WeakMap<object, IdName>();
export const idNameOf = (parse: unknown) => parsers.get(parse as object);

/** The id of something that exists. Every argument and option that takes one has this parser. */
export function idOf(name: IdName) {
  const parse = (text: string) => {
    const id = newIdOf(name)(text);
    return IDS[name].form === ROW_NUMBER ? Number(id) : id;
  };
  parsers.set(parse, name);
  return parse;
}

export function idsOf(name: IdName) {
  const parse = (text: string, before: readonly string[] = []) => [
    ...before,
    ...commaSeparated(text).map(newIdOf(name)),
  ];
  parsers.set(parse, name);
  return parse;
}

export const withId = (command: Command, name: IdName, operand: string) =>
  command.argument(operand, '', idOf(name));

/** `P100001,P100002`. */
export const commaSeparated = (text: string) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '');

/** Looks up the ids of a command: for an unknown one a list would say "None." @throws Refused naming those that do not exist. */
export async function checkIds(db: DbOrTransaction, command: Command): Promise<void> {
  const given = [
    ...command.options.map((option) => [option.parseArg, command.getOptionValue(option.attributeName())]),
    ...command.registeredArguments.map((argument, at) => [argument.parseArg, command.processedArgs[at]]),
  ].flatMap(([parse, value]) => {
    const name = idNameOf(parse);
    return name === undefined || value === undefined
      ? []
      : [value].flat().map((id) => ({ name, id: String(id) }));
  });
  if (given.length === 0) return;
  const looks = given.map(({ name, id }, at) => {
    const anywhere = kindsOf(name, id).map(({ known }) => {
      const [before = '', after = ''] = known.split('$');
      return sql`exists (select from ${sql.raw(before)}${id}${sql.raw(after)})`;
    });
    return sql`select ${at}::int as at where not (${sql.join(anywhere, sql` or `)})`;
  });
  const missing = await db.execute<{ at: number }>(sql.join(looks, sql` union all `));
  if (missing.length === 0) return;
  const said = missing.map(({ at }) => {
    const { name = 'partner', id = '' } = given[at] ?? {};
    const { noun, hint } = IDS[name];
    return `${noun} ${id} does not exist${hint}.`;
  });
  throw new Refused('not_found', said.join(' '));
}

/** A subject of changes is known from the log; or it is a thing that has never been changed. */
const kindsOf = (name: IdName, id: string): readonly IdKind[] =>
  name === 'subject'
    ? [IDS.subject, ...Object.values(SUBJECTS).filter(({ form }) => form.test(id))]
    : [IDS[name]];
