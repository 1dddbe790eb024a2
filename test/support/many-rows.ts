import type { Database } from '../../db/postgres/connect';
import type { Tenant } from '../../domain/tenant';

export const MANY_STATES = ['failed', 'held', 'retrying', 'delivered'] as const;

interface Many extends Pick<Tenant, 'partnerId'> {
  /** Notifications of each of these states, one a second back from now, each of its own application. */
  readonly each: number;
  readonly states?: readonly (typeof MANY_STATES)[number][];
}

/** Stores many notifications of a partner's sandbox at once. */
export async function storeMany({ sql }: Pick<Database, 'sql'>, { partnerId, each, states }: Many) {
  for (const [at, state] of (states ?? MANY_STATES).entries()) {
    const ended = state === 'failed' || state === 'delivered' ? state : null;
    await sql`
      insert into notifications (notification_id, event_id, event_type, partner_id, environment, application_id, sequence,
        merchant_reference, body, end_state, end_reason, delivered_at, ended_at, created_at)
      select 'ntf_' || left(ulid_floor(at), 10) || lpad(g::text, 16, ${String(at)}), 'evt_' || left(ulid_floor(at), 10) || lpad(g::text, 16, ${String(at)}),
        'credit_application.accepted', ${partnerId}, 'sandbox', ${`app_${state}_`} || g, 1, 'order ' || g % 100, '{}',
        ${ended}::text, case when ${ended}::text = 'failed' then 'exhausted' end,
        case when ${ended}::text = 'delivered' then at end, case when ${ended}::text is not null then at end, at
      from generate_series(1, ${each}) g, lateral (select now() - g * interval '1 second' as at) moment`;
    if (ended === null)
      await sql`
        insert into deliveries (notification_id, partner_id, environment, application_id, sequence, test, state, step, held_at, hold_reason)
        select notification_id, partner_id, environment, application_id, sequence, false,
          ${state === 'held' ? 'held' : 'started'}, ${state === 'held' ? 0 : 2},
          case when ${state} = 'held' then created_at end, case when ${state} = 'held' then 'webhook_not_registered' end
        from notifications where partner_id = ${partnerId} and application_id like ${`app\\_${state}\\_%`}`;
  }
  await sql`analyze notifications`;
  await sql`analyze deliveries`;
}
