import { ulid } from 'ulid';
import { FIRST_TURN, claimDue } from '../../db/notifications/claim';
import { NOTIFICATIONS_CHANNEL, SOMETHING_IS_DUE } from '../../db/notifications/channels';
import { ORDER_WAIT_SECONDS } from '../../db/notifications/application-order';
import { connectDatabase } from '../../db/postgres/connect';
import { hint } from '../../db/postgres/hints';
import { runPrepared } from '../../db/postgres/prepared';
import { benchEvent } from '../delivery/event';
import { serveMessages } from '../delivery/children';
import { SESSIONS, type RanMessage, type RunMessage, type Way } from './messages';

/** One of the processes of `npm run bench:commits`: stores with four writers at a time, or makes one claim after another. */

/** As many as make 32 with eight processes. */
const WRITERS = 4;
/** Most that a claim takes: a worker at work has room for some of its 64. */
const LIMIT = 16;
const SLOTS = 16;
const LEASE_SECONDS = 10;

const [databaseUrl = '', ...partners] = process.argv.slice(2);
const shared = { url: databaseUrl, applicationName: SESSIONS, statementTimeoutMs: 60_000 };
/** One connection more, for hints. */
const prepared = connectDatabase({ ...shared, poolSize: WRITERS + 1, plannedOnce: true });
/** A worker hears of what is stored. */
const listening = connectDatabase({ ...shared, poolSize: 1, applicationName: 'pfqs bench listener' });

// An application with its first notification, as an integration opens it, in one prepared statement: in the service it is a
// transaction of four, whose client would use more CPU than two cores have. The old way is that of 21 November.
const STORE = `
  with application as (
    insert into credit_applications (application_id, lender, lender_reference, partner_id, environment, merchant_id, quote_id,
      credit_product, loan_pence, deposit_pence, sequence)
    values ($1, 'lender_a', $1, $2, 'live', 'M1000002', $3, 'Classic 12', 90000, 10000, 1) returning application_id),
  stored as (
    insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence, body)
    select $4, $5, 'credit_application.created', $2, 'live', application_id, 1, $6 from application returning notification_id)`;
const STORE_IN: Record<Way, string> = {
  old: `${STORE} select pg_notify('${NOTIFICATIONS_CHANNEL}', notification_id) from stored`,
  ours: `${STORE} select from stored`,
};
const BODY = JSON.stringify(benchEvent('evt_bench', 'app_bench'));

async function store(way: Way, nth: number): Promise<void> {
  const { sql } = prepared;
  const id = ulid();
  const partnerId = partners[nth % partners.length] ?? '';
  await runPrepared(sql, STORE_IN[way], [
    `app_${id}`,
    partnerId,
    `qte_${id}`,
    `ntf_${id}`,
    `evt_${id}`,
    BODY,
  ]);
  if (way === 'ours') hint(sql, SOMETHING_IS_DUE);
}

let turn = FIRST_TURN;
// All claims take turns: the second argument has to wait for the lock.
const CLAIM_OLD = `
  select claimed, last_partner as partner, last_environment as environment
  from (select length(pg_advisory_xact_lock(1)::text) as nought) turn, claim_notifications($1::int + nought, $2::int,
    make_interval(secs => $3::float8), make_interval(secs => $4::float8), $5::text, $6::text, true)`;
/** As if each had been delivered, and another one stored: what can be claimed stays the same. */
const PUT_BACK = `
  update notifications set taken_at = null, due_at = created_at where notification_id = any($1::text[])`;

interface Claimed {
  readonly claimed: readonly { readonly notificationId: string }[];
  readonly partner: string;
  readonly environment: string;
}

async function claim(way: Way): Promise<number> {
  const { sql } = prepared;
  let ids: string[];
  if (way === 'ours') {
    const got = await claimDue(sql, {
      limit: LIMIT,
      slots: SLOTS,
      leaseMs: LEASE_SECONDS * 1_000,
      turn,
      everyMonth: true,
    });
    ({ turn } = got);
    ids = got.claimed.map(({ notificationId }) => notificationId);
  } else {
    const { partnerId, environment } = turn;
    const values = [LIMIT, SLOTS, LEASE_SECONDS, ORDER_WAIT_SECONDS, partnerId, environment];
    const [got] = await runPrepared<Claimed>(sql, CLAIM_OLD, values);
    if (got === undefined) throw new Error('the claim came to nothing');
    turn = { partnerId: got.partner, environment: got.environment };
    ids = got.claimed.map(({ notificationId }) => notificationId);
  }
  if (ids.length > 0) await runPrepared(sql, PUT_BACK, [ids]);
  return ids.length;
}

async function run({ task, way, ms }: RunMessage): Promise<RanMessage> {
  const endsAt = performance.now() + ms;
  let [done, taken] = [0, 0];
  const worker = async () => {
    while (performance.now() < endsAt) {
      if (task === 'store') await store(way, done);
      else taken += await claim(way);
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: task === 'store' ? WRITERS : 1 }, worker));
  return { done, taken };
}

async function main(): Promise<void> {
  await listening.sql.listen(NOTIFICATIONS_CHANNEL, () => undefined);
  serveMessages(run, () => Promise.all([prepared, listening].map((one) => one.close())));
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
