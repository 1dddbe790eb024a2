import type { NotificationItem } from '../../contracts/notifications';
import type { RecoveryBody } from '../../contracts/notification-recovery';
import type { PartnerApplicationBody } from '../../contracts/webhook-event';
import { askPartnerApi, dataOf, type PartnerSettings } from '../partner-api';

export type { NotificationItem };
type Recovery = RecoveryBody['data'];
type Application = PartnerApplicationBody['data'];

/** What a partner asks of the event API, as the guide's chapter "When something was missed" has it. */
export interface PartnerLog {
  /** The newest, 25 at most; of one application when its id is given. */
  list(applicationId?: string): Promise<readonly NotificationItem[]>;
  resend(notificationId: string): Promise<void>;
  /** How many of the span are failed, held or expired. */
  countMissed(since: Date, until: Date): Promise<number>;
  recover(since: Date, until: Date): Promise<string>;
  recovery(recoveryId: string): Promise<Recovery>;
  application(applicationId: string): Promise<Application>;
}

/** Every method throws with the API's code and message when it is refused, and NobodyThere. */
export function openPartnerLog(settings: PartnerSettings): PartnerLog {
  const get = <T>(path: string) => dataOf<T>(askPartnerApi(settings, 'GET', path));
  const post = <T>(path: string, body?: unknown) => dataOf<T>(askPartnerApi(settings, 'POST', path, body));
  const recover = <T>(since: Date, until: Date, dryRun: boolean) =>
    post<T>('/v1/notifications/recover', {
      created_from: since.toISOString(),
      created_to: until.toISOString(),
      dry_run: dryRun,
    });
  return {
    async list(applicationId) {
      const filter = applicationId === undefined ? '' : `?credit_application_id=${applicationId}`;
      return (await get<{ notifications: NotificationItem[] }>(`/v1/notifications${filter}`)).notifications;
    },
    async resend(notificationId) {
      await post(`/v1/notifications/${encodeURIComponent(notificationId)}/resend`);
    },
    countMissed: async (since, until) => (await recover<{ matched: number }>(since, until, true)).matched,
    recover: async (since, until) =>
      (await recover<{ recovery_id: string }>(since, until, false)).recovery_id,
    recovery: (recoveryId) => get(`/v1/notifications/recoveries/${recoveryId}`),
    application: (applicationId) => get(`/v1/credit-applications/${applicationId}`),
  };
}
