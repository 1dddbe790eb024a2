import type { ApplicationState } from '../../domain/application-states';
import type { Application } from './notifications';
import type { Tenant } from '../../domain/tenant';
import { msText as ms, runPrepared, type Reader } from '../postgres/prepared';

/** An event of an application as its partner was or will be sent it. Moments in Unix milliseconds. */
interface PartnerEvent {
  readonly sequence: number;
  readonly eventId: string;
  readonly notificationId: string;
  readonly eventType: string;
  readonly previousStatus: ApplicationState | null;
  readonly occurredMs: number;
}

/** An application as its partner sees it. Moments in Unix milliseconds. */
export interface PartnerApplication extends Pick<
  Application,
  | 'applicationId'
  | 'quoteId'
  | 'merchantReference'
  | 'merchantId'
  | 'lender'
  | 'lenderReference'
  | 'state'
  | 'creditProduct'
> {
  readonly createdMs: number;
  readonly updatedMs: number;
  /** In their order. Those whose month has been dropped are missing. */
  readonly events: readonly PartnerEvent[];
}

// One statement, so that state and events are of one moment. An event without one of the lender's is the opening.
const FIND = `
  select p.application_id as "applicationId", p.quote_id as "quoteId", p.merchant_reference as "merchantReference",
    p.merchant_id as "merchantId", p.lender, p.lender_reference as "lenderReference", p.state,
    p.credit_product as "creditProduct",
    ${ms('p.created_at')} as "createdMs", ${ms('p.updated_at')} as "updatedMs",
    (select coalesce(json_agg(json_build_object('sequence', n.sequence, 'eventId', n.event_id, 'notificationId', n.notification_id, 'eventType', n.event_type,
        'previousStatus', e.previous_state, 'occurredMs', ${ms('coalesce(e.occurred_at, p.created_at)')})
        order by n.sequence), '[]')
      from notifications n
      left join lender_events e on e.application_id = n.application_id and e.sequence = n.sequence
      where n.application_id = p.application_id and n.partner_id = p.partner_id and n.environment = p.environment)::text as events
  from credit_applications p
  where p.application_id = $1 and p.partner_id = $2 and p.environment = $3`;

/** Reads an application of this partner and environment with its events; null for all others. */
export async function findApplicationForPartner(
  reader: Reader,
  applicationId: string,
  { partnerId, environment }: Tenant,
): Promise<PartnerApplication | null> {
  type Row = Omit<PartnerApplication, 'events'> & { readonly events: string };
  const [row] = await runPrepared<Row>(reader, FIND, [applicationId, partnerId, environment]);
  return row === undefined ? null : { ...row, events: JSON.parse(row.events) as PartnerEvent[] };
}
