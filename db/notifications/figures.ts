import { TEST_EVENT_TYPE } from '../../domain/test-event-type';
import { runPrepared, type Reader } from '../postgres/prepared';
import { TEST_LIMIT_PER_MONTH } from './quota';

/** Shares of the monthly limit that metrics tell apart, in per cent. */
export const LIMIT_SHARES = [50, 80, 100] as const;

/** What is owed and what was sent, for all partners together, as metrics show it. */
export interface DeliveryFigures {
  /** Not delivered yet, by state. */
  readonly undelivered: Readonly<Record<'pending' | 'started' | 'held', number>>;
  /** Milliseconds since the oldest pause began; 0 when nothing is paused. */
  readonly oldestPausedMs: number;
  /** Of this UTC month. */
  readonly month: readonly {
    readonly environment: 'sandbox' | 'live';
    readonly delivered: number;
    readonly failed: number;
    /** Partners that have used at least so much of their test notifications, in the order of `LIMIT_SHARES`. */
    readonly limitUsed: readonly number[];
  }[];
}

/** Of all months: to plan it takes ten times as long as to run it, so it is prepared. */
const UNDELIVERED = `
  select (select count(*) from notifications where state = 'pending')::int as pending, s.*,
    (select count(*) from notifications where state = 'held')::int as held
  from (
    select count(*)::int as started,
      coalesce(extract(epoch from service_now() - min(paused_at)) * 1000, 0)::float8 as "oldestPausedMs"
    from notifications where state = 'started') s`;

const MONTH = `
  select environment, coalesce(sum(delivered), 0)::int as delivered, coalesce(sum(failed), 0)::int as failed,
    json_build_array(${LIMIT_SHARES.map(
      (share) => `count(*) filter (
      where event_type = '${TEST_EVENT_TYPE}' and (delivered + reserved) * 100 >= ${share * TEST_LIMIT_PER_MONTH})`,
    ).join(', ')}) as "limitUsed"
  from unnest(array['sandbox', 'live']) environment
  left join (select * from monthly_counts where month = service_month()) c using (environment)
  group by environment`;

export async function deliveryFigures(reader: Reader): Promise<DeliveryFigures> {
  type Open = DeliveryFigures['undelivered'] & Pick<DeliveryFigures, 'oldestPausedMs'>;
  const [open] = await runPrepared<Open>(reader, UNDELIVERED);
  if (open === undefined) throw new Error('the figures of notifications came back empty');
  const { oldestPausedMs, ...undelivered } = open;
  const month = await runPrepared<DeliveryFigures['month'][number]>(reader, MONTH);
  return { undelivered, oldestPausedMs, month };
}
