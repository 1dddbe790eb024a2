import type { Db } from '../postgres/connect';
import { appendChange } from '../audit/change-log';
import { Refused } from '../refused';
import type { EndpointQueue } from './hold';
import { EndpointMissing, NotResendable, resendChange, resendNotification } from './resend';

export type PartnerResend =
  | { readonly kind: 'resent'; readonly eventId: string }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'no_endpoint' }
  | { readonly kind: 'not_resendable'; readonly why: NotResendable['why'] };

/**
 * Sends a notification of this partner and environment again, as `ops notifications resend` does, and writes into the change log
 * under which key. Of two calls at once the second finds it under way.
 */
export async function resendForPartner(
  db: Db,
  notificationId: string,
  wanted: { readonly owner: EndpointQueue; readonly keyId: string },
): Promise<PartnerResend> {
  const { owner, keyId } = wanted;
  try {
    return await db.transaction(async (tx) => {
      const resent = await resendNotification(tx, notificationId, { owner });
      await appendChange(tx, resendChange(resent, keyId));
      return { kind: 'resent', eventId: resent.was.eventId };
    });
  } catch (error) {
    if (error instanceof NotResendable) return { kind: 'not_resendable', why: error.why };
    if (error instanceof EndpointMissing) return { kind: 'no_endpoint' };
    if (error instanceof Refused && error.reason === 'not_found') return { kind: 'not_found' };
    throw error;
  }
}
