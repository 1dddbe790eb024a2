import type { NotificationState } from '../../domain/notification-states';
import { storeRow } from './partner-events';
import { ulid } from 'ulid';
import type { Database } from '../../db/postgres/connect';

const DAY_MS = 86_400_000;

/** The month of a past day, `2019_03`. */
export const monthOf = (daysAgo: number) =>
  new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 7).replace('-', '_');

/** Makes the partitions of a past month, as they would be there had the service run then. */
export async function makePastMonth({ sql }: Database, month: string): Promise<void> {
  for (const [table, prefix] of [
    ['quotes', 'qte_'],
    ['notifications', 'ntf_'],
    ['delivery_attempts', 'ntf_'],
  ] as const) {
    const first = `${month.replace('_', '-')}-01T00:00:00Z`;
    const [bounds] = await sql<{ low: string; high: string }[]>`
      select ulid_floor(${first}::timestamptz) as low, ulid_floor(${first}::timestamptz + interval '1 month') as high`;
    await sql.unsafe(
      `create table if not exists ${table}_${month} partition of ${table}
       for values from ('${prefix}${bounds?.low}') to ('${prefix}${bounds?.high}')`,
    );
  }
}

export async function storeOldQuote({ sql }: Database, daysAgo: number): Promise<string> {
  const id = `qte_${ulid(Date.now() - daysAgo * DAY_MS)}`;
  await sql`
    insert into quotes (quote_id, partner_id, key_id, environment, merchant_id, loan_pence, merchant_finance_url, request_id,
      response, fitted)
    values (${id}, 'P100001', 'key_x', 'live', 'M123456', 100000, 'https://shop.example', 'rq_x', '{}', '[]')`;
  return id;
}

/** A notification of a past day, with one attempt and what was answered to it. */
export async function storeOldNotification(
  { sql }: Database,
  daysAgo: number,
  state: NotificationState = 'delivered',
): Promise<string> {
  const at = new Date(Date.now() - daysAgo * DAY_MS);
  const id = await storeRow(
    { sql },
    { partnerId: 'P100001', environment: 'live', state, at, body: '{"a":1}' },
  );
  await sql`
    insert into delivery_attempts (notification_id, attempt_number, generation, endpoint_id, outcome, answer, finished_at)
    values (${id}, 1, 1, 'whe_x', 'delivered', 'ok', service_now())`;
  return id;
}
