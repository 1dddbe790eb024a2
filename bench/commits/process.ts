import { ulid } from 'ulid';
import { applicationEventText } from '../../contracts/application-event';
import { insertStatusNotification, type Application } from '../../db/applications/notifications';
import { FIRST_TURN, claimDue } from '../../db/notifications/claim';
import { NOTIFICATIONS_CHANNEL } from '../../db/notifications/channels';
import { ORDER_WAIT_SECONDS } from '../../db/notifications/application-order';
import { connectDatabase, type DbOrTransaction } from '../../db/postgres/connect';
import { runPrepared } from '../../db/postgres/prepared';
import { creditApplications } from '../../db/schema';
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
const database = connectDatabase({ ...shared, poolSize: WRITERS });
const prepared = connectDatabase({ ...shared, poolSize: 2, plannedOnce: true });
/** A worker hears of what is stored. */
const listening = connectDatabase({ ...shared, poolSize: 1, applicationName: 'pfqs bench listener' });

// The statement of November 21: the same insert, and its announcement.
const STORE_OLD = `
  with stored as (
    insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence, body)
    select $1, $2, $3, $4, $5, $6, $7::int, $8 where exists (
      select 1 from webhook_endpoints e where e.partner_id = $4 and e.environment = $5 and e.state = 'active')
    returning notification_id)
  select pg_notify('${NOTIFICATIONS_CHANNEL}', notification_id) from stored`;

async function storeOld(tx: DbOrTransaction, application: Application): Promise<void> {
  const { applicationId, partnerId, environment, state, sequence } = application;
  const [notificationId, eventId] = [`ntf_${ulid()}`, `evt_${ulid()}`];
  const about = {
    eventId,
    createdAt: new Date(),
    status: state,
    previousStatus: null,
    occurredAt: new Date(),
  };
  const body = applicationEventText({ ...application, ...about });
  const type = `credit_application.${state}`;
  const values = [notificationId, eventId, type, partnerId, environment, applicationId, sequence, body];
  await runPrepared(tx, STORE_OLD, values);
}

/** An application with its first notification, in one transaction, as an integration opens it. */
async function store(way: Way, nth: number): Promise<void> {
  const partnerId = partners[nth % partners.length] ?? '';
  await database.db.transaction(async (tx) => {
    const [application] = await tx
      .insert(creditApplications)
      .values({
        applicationId: `app_${ulid()}`,
        lender: 'lender_a',
        lenderReference: ulid(),
        partnerId,
        environment: 'live',
        merchantId: 'M123456',
        quoteId: `qte_${ulid()}`,
        creditProduct: 'Classic 12',
        loanPence: 90_000,
        depositPence: 10_000,
        serviceKeyId: 'svk_bench',
        sequence: 1,
      })
      .returning();
    if (application === undefined) throw new Error('no application');
    if (way === 'old') await storeOld(tx, application);
    else
      await insertStatusNotification(tx, application, null, { requestId: null, write: applicationEventText });
  });
}

let turn = FIRST_TURN;
// All claims take turns: the second argument has to wait for the lock.
const CLAIM_OLD = `
  select claimed, last_partner as partner, last_environment as environment
  from (select length(pg_advisory_xact_lock(1)::text) as nought) turn, claim_notifications($1::int + nought, $2::int,
    make_interval(secs => $3::float8), make_interval(secs => $4::float8), $5::text, $6::text)`;
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
    const got = await claimDue(sql, { limit: LIMIT, slots: SLOTS, leaseMs: LEASE_SECONDS * 1_000, turn });
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
  process.on('message', (message: RunMessage) => {
    run(message).then(
      (answer) => process.send?.(answer),
      (error: unknown) => {
        console.error(error);
        process.exit(1);
      },
    );
  });
  process.on('disconnect', () => process.exit(0));
  process.on('SIGTERM', () => {
    void Promise.all([database, prepared, listening].map((one) => one.close())).then(() => process.exit(0));
  });
  process.send?.({ ready: true });
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
