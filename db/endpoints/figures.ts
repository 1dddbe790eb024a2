import { and, count, inArray, sql } from 'drizzle-orm';
import { WARN_AFTER_HOURS } from '../../domain/endpoint-health';
import type { DbOrTransaction } from '../postgres/connect';
import { EXPIRY_WARNING_DAYS, HELD_FOR_DAYS } from '../notifications/expire';
import { notifications } from '../schema';
import type { WebhookEndpoint } from './endpoints';

/** Endpoints and held notifications as metrics show them. */
export interface HealthFigures {
  readonly held: number;
  /** Milliseconds since the oldest of them was held; 0 when there is none. */
  readonly oldestHeldMs: number;
  /** Those that expire within seven days. */
  readonly expiring: number;
  readonly disabled: Readonly<Record<'operator' | 'gone' | 'failing', number>>;
  /** Active endpoints without a success for at least so many hours of failing. */
  readonly failing: readonly { readonly hours: number; readonly count: number }[];
}

export async function healthFigures(db: DbOrTransaction): Promise<HealthFigures> {
  const soon = HELD_FOR_DAYS - EXPIRY_WARNING_DAYS;
  const hours = [0, ...WARN_AFTER_HOURS];
  const failing = hours.map(
    (each) => sql`count(*) filter (
      where state = 'active' and failing_since <= service_now() - make_interval(hours => ${each}::int))`,
  );
  const [row] = await db.execute<{
    held: number;
    oldest: number;
    expiring: number;
    operator: number;
    gone: number;
    failing: number;
    counts: number[];
  }>(sql`
    select h.*, e.* from (
      select count(*)::int as held,
        coalesce(extract(epoch from service_now() - min(held_at)) * 1000, 0)::float8 as oldest,
        (count(*) filter (where held_at <= service_now() - make_interval(days => ${soon}::int)))::int as expiring
      from notifications where state = 'held') h,
    (
      select (count(*) filter (where state = 'disabled' and disabled_reason = 'operator'))::int as operator,
        (count(*) filter (where state = 'disabled' and disabled_reason = 'gone'))::int as gone,
        (count(*) filter (where state = 'disabled' and disabled_reason = 'failing'))::int as failing,
        json_build_array(${sql.join(failing, sql`, `)}) as counts
      from webhook_endpoints) e`);
  if (row === undefined) throw new Error('the figures of endpoints came back empty');
  return {
    held: row.held,
    oldestHeldMs: row.oldest,
    expiring: row.expiring,
    disabled: { operator: row.operator, gone: row.gone, failing: row.failing },
    failing: hours.map((each, at) => ({ hours: each, count: row.counts[at] ?? 0 })),
  };
}

export type EndpointWithHeld = WebhookEndpoint & { readonly held: number };

/** Adds what is held. An endpoint that was removed has none of it: that waits for the one in its place. */
export async function withHeld(
  db: DbOrTransaction,
  endpoints: readonly WebhookEndpoint[],
): Promise<EndpointWithHeld[]> {
  const partners = [...new Set(endpoints.map(({ partnerId }) => partnerId))];
  const rows = await db
    .select({
      partnerId: notifications.partnerId,
      environment: notifications.environment,
      held: count(),
    })
    .from(notifications)
    .where(and(sql`${notifications.state} = 'held'`, inArray(notifications.partnerId, partners)))
    .groupBy(notifications.partnerId, notifications.environment);
  return endpoints.map((one) => {
    const mine = rows.find((row) => row.partnerId === one.partnerId && row.environment === one.environment);
    return { ...one, held: one.state === 'removed' ? 0 : (mine?.held ?? 0) };
  });
}
