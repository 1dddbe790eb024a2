import { and, desc, eq, getTableColumns, inArray } from 'drizzle-orm';
import type { DbOrTransaction } from '../postgres/connect';
import { deliveryAttempts, notifications } from '../schema';
import type { KeyEnvironment } from '../keys/key';
import type { AttemptSummary } from '../notifications/read';
import { findEndpoint, type WebhookEndpoint } from './endpoints';

/** Attempts are found through the notifications of their partner: this many of the newest are looked at. */
const NOTIFICATIONS_LOOKED_AT = 100;

const { answer: _, ...SUMMARY } = getTableColumns(deliveryAttempts);

/**
 * The last attempts to reach an endpoint, newest first, among the newest notifications of its partner and environment.
 * @param most attempts returned.
 */
export async function lastAttempts(
  db: DbOrTransaction,
  { endpointId, partnerId, environment }: WebhookEndpoint,
  most: number,
): Promise<AttemptSummary[]> {
  const recent = db
    .select({ id: notifications.notificationId })
    .from(notifications)
    .where(and(eq(notifications.partnerId, partnerId), eq(notifications.environment, environment)))
    .orderBy(desc(notifications.notificationId))
    .limit(NOTIFICATIONS_LOOKED_AT);
  return db
    .select(SUMMARY)
    .from(deliveryAttempts)
    .where(and(inArray(deliveryAttempts.notificationId, recent), eq(deliveryAttempts.endpointId, endpointId)))
    .orderBy(desc(deliveryAttempts.startedAt), desc(deliveryAttempts.attemptNumber))
    .limit(most);
}

/** More than are under way to one endpoint at a time, and ten that have ended. */
const ATTEMPTS_REMEMBERED = 40;

/**
 * How an endpoint has answered lately: its last attempts that have ended, newest first.
 * @returns null when the partner has no endpoint in that environment.
 */
export async function endpointHistory(
  db: DbOrTransaction,
  { partnerId, environment }: { readonly partnerId: string; readonly environment: KeyEnvironment },
) {
  const endpoint = await findEndpoint(db, partnerId, environment);
  if (endpoint === null) return null;
  const attempts = await lastAttempts(db, endpoint, ATTEMPTS_REMEMBERED);
  return {
    endpointId: endpoint.endpointId,
    attempts: attempts.flatMap(({ outcome, durationMs }) =>
      outcome === null ? [] : [{ outcome, durationMs }],
    ),
  };
}
