import { applicationEventText } from '../contracts/webhook-event';
import { createApplication, warnOfCrowdedQuote, type NewApplication } from '../db/applications/create';
import {
  applicationExists,
  findApplication,
  findApplicationForPartner,
} from '../db/applications/applications';
import { recordLenderEvent, type NewLenderEvent } from '../db/applications/lender-events';
import { simulateApplication, simulateLenderEvent } from '../db/applications/simulate';
import { findEndpointForPartner } from '../db/endpoints/endpoints';
import { livePublicKeys } from '../db/endpoints/key-pairs';
import { readCursorSecret, findServiceKeysByHash } from '../db/keys';
import { insertTestNotification, type NewTestNotification } from '../db/notifications/create';
import { readProgress } from '../db/notifications/notification';
import { findForPartner, listForPartner } from '../db/notifications/partner';
import { recoverForPartner, recoveryProgress } from '../db/notifications/recovery';
import { resendForPartner } from '../db/notifications/resend';
import type { Database, Sql } from '../db/postgres/connect';
import type { Config } from '../runtime/config/config';
import type { Tracing } from '../runtime/telemetry/tracing';
import { withTimeout } from '../timing/timing';

export type ApiQueries = ReturnType<typeof apiQueries>;

/**
 * Each statement has a timeout of DATABASE_TIMEOUT_MS. Those that store are traced.
 * @param database `pages` is for partners' own lists
 */
export function apiQueries(
  { sql, db, pages }: Database & { readonly pages: Sql },
  config: Pick<Config, 'DATABASE_TIMEOUT_MS' | 'LENDER_EVENT_WAIT_SECONDS'>,
  tracing: Tracing | null,
) {
  const on =
    <Handle, Given extends unknown[], Found>(
      handle: Handle,
      run: (handle: Handle, ...given: Given) => PromiseLike<Found>,
      what: string,
    ) =>
    (...given: Given) =>
      withTimeout(run(handle, ...given), config.DATABASE_TIMEOUT_MS, what);
  const step =
    <Given extends unknown[], Stored>(name: string, store: (...given: Given) => Promise<Stored>) =>
    (...given: Given) =>
      tracing === null ? store(...given) : tracing.step(name, () => store(...given));
  /** Stored with a notification, so that its delivery joins the trace. */
  const traced = <Wanted>(wanted: Wanted) => ({ ...wanted, traceParent: tracing?.current() ?? null });
  const waitSeconds = config.LENDER_EVENT_WAIT_SECONDS;

  const storeTest = on(sql, insertTestNotification, 'test notification');
  const storeApplication = on(db, createApplication, 'credit application');
  const storeLenderEvent = on(db, recordLenderEvent, 'lender event');
  const storeSimulated = on(db, simulateApplication, 'simulated application');
  const storeSimulatedEvent = on(db, simulateLenderEvent, 'simulated event');
  return {
    storeTest: step('store notification', (wanted: NewTestNotification) => storeTest(traced(wanted))),
    readProgress: on(db, readProgress, 'test notification'),
    listNotifications: on(pages, listForPartner, 'notifications'),
    findNotification: on(pages, findForPartner, 'notification'),
    cursorSecret: on(sql, readCursorSecret, 'cursor secret'),
    resendNotification: step('resend notification', on(db, resendForPartner, 'resend')),
    recoverNotifications: step('store recovery', on(db, recoverForPartner, 'recovery')),
    recoveryProgress: on(pages, recoveryProgress, 'recovery'),
    findPartnerApplication: on(pages, findApplicationForPartner, 'credit application'),
    simulateApplication: step('store application', (wanted: Parameters<typeof simulateApplication>[1]) =>
      storeSimulated(traced(wanted), applicationEventText),
    ),
    simulateEvent: step('store lender event', (wanted: Parameters<typeof simulateLenderEvent>[1]) =>
      storeSimulatedEvent(wanted, applicationEventText),
    ),
    webhookEndpoint: on(pages, findEndpointForPartner, 'webhook endpoint'),
    webhookKeys: on(db, livePublicKeys, 'webhook keys'),
    findServiceKeys: on(db, findServiceKeysByHash, 'service keys'),
    createApplication: step('store application', (wanted: NewApplication) =>
      storeApplication(traced(wanted), applicationEventText),
    ),
    warnOfCrowdedQuote: on(db, warnOfCrowdedQuote, 'applications of a quote'),
    recordLenderEvent: step('store lender event', (wanted: NewLenderEvent) =>
      storeLenderEvent(traced(wanted), { write: applicationEventText, waitSeconds }),
    ),
    findApplication: on(db, findApplication, 'credit application'),
    applicationExists: on(db, applicationExists, 'credit application'),
  };
}
