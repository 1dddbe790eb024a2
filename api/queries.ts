import type { AppDeps } from './app';
import type { ApplicationRoutesDeps } from './internal-app';
import { applicationEventText } from '../contracts/webhook-event';
import { createApplication, warnOfCrowdedQuote } from '../db/applications/create';
import {
  applicationExists,
  findApplication,
  findApplicationForPartner,
} from '../db/applications/applications';
import { recordLenderEvent } from '../db/applications/lender-events';
import { livePublicKeys } from '../db/endpoints/key-pairs';
import { findServiceKeysByHash } from '../db/keys/service-keys';
import { insertTestNotification } from '../db/notifications/create';
import { readProgress } from '../db/notifications/notification';
import { readCursorSecret } from '../db/keys/key';
import { findForPartner, listForPartner } from '../db/notifications/partner';
import { recoverForPartner, recoveryProgress } from '../db/notifications/recovery';
import { resendForPartner } from '../db/notifications/resend';
import { createCursors } from './routes/notifications';
import type { Database, Sql } from '../db/postgres/connect';
import { withTimeout } from '../timing/timeout';
import type { Config } from '../runtime/config/config';
import type { Tracing } from '../runtime/telemetry/tracing';

/** What the routes ask of Postgres, quotes and the catalogue apart. */
type ApiQueries = Pick<AppDeps, 'storeTest' | 'readProgress' | 'events'> &
  Omit<ApplicationRoutesDeps, 'metrics' | 'tracer' | 'now' | 'keylessPerMinute' | 'trustedProxies'>;

/**
 * Each with a deadline of DATABASE_TIMEOUT_MS; what is stored is a step of the request's trace.
 * @param database with the pool for what partners read of their notifications.
 */
export function apiQueries(
  { sql, db, pages }: Database & { readonly pages: Sql },
  config: Pick<Config, 'DATABASE_TIMEOUT_MS' | 'LENDER_EVENT_WAIT_SECONDS'>,
  tracing: Tracing | null,
): ApiQueries {
  const bounded = <T>(query: PromiseLike<T>, what: string) =>
    withTimeout(query, config.DATABASE_TIMEOUT_MS, what);
  const step = <T>(name: string, task: () => Promise<T>) =>
    tracing === null ? task() : tracing.step(name, task);
  /** What is stored with a notification, so that its delivery joins the trace. */
  const traced = <Wanted>(wanted: Wanted) => ({ ...wanted, traceParent: tracing?.current() ?? null });

  return {
    storeTest: (notification) =>
      step('store notification', () =>
        bounded(insertTestNotification(sql, traced(notification)), 'test notification'),
      ),
    readProgress: (notificationId) => bounded(readProgress(db, notificationId), 'test notification'),
    events: {
      listNotifications: (wanted) => bounded(listForPartner(pages, wanted), 'notifications'),
      findNotification: (id, owner) => bounded(findForPartner(pages, id, owner), 'notification'),
      resendNotification: (id, by) =>
        step('resend notification', () => bounded(resendForPartner(db, id, by), 'resend')),
      recoverNotifications: (wanted) =>
        step('store recovery', () => bounded(recoverForPartner(db, wanted), 'recovery')),
      recoveryProgress: (id, owner) => bounded(recoveryProgress(pages, id, owner), 'recovery'),
      findPartnerApplication: (id, owner) =>
        bounded(findApplicationForPartner(pages, id, owner), 'credit application'),
      webhookKeys: (owner) => bounded(livePublicKeys(db, owner), 'webhook keys'),
      cursors: createCursors(() => bounded(readCursorSecret(sql), 'cursor secret')),
    },
    findServiceKeys: (hashes) => bounded(findServiceKeysByHash(db, hashes), 'service keys'),
    createApplication: (wanted) =>
      step('store application', () =>
        bounded(createApplication(db, traced(wanted), applicationEventText), 'credit application'),
      ),
    warnOfCrowdedQuote: (application) =>
      bounded(warnOfCrowdedQuote(db, application), 'applications of a quote'),
    recordLenderEvent: (told) =>
      step('store lender event', () =>
        bounded(
          recordLenderEvent(db, traced(told), {
            write: applicationEventText,
            waitSeconds: config.LENDER_EVENT_WAIT_SECONDS,
          }),
          'lender event',
        ),
      ),
    findApplication: (applicationId, scope) =>
      bounded(findApplication(db, applicationId, scope), 'credit application'),
    applicationExists: (applicationId) => bounded(applicationExists(db, applicationId), 'credit application'),
  };
}
