import { z } from 'zod';
import {
  LEAST_RETENTION_DAYS,
  USUAL_RETENTION_DAYS,
  type RetentionDays,
  type RetentionKind,
} from '../../domain/retention';
import { whole } from './setting-types';

/** Read by `migrate` alone. */
const days = (kind: RetentionKind) => whole(LEAST_RETENTION_DAYS, 36_500).default(USUAL_RETENTION_DAYS[kind]);

/** Settings of how long data is kept; docs/decisions/postgres.md gives the reasons of the defaults. */
export const retentionSettings = {
  RETENTION_AT: z
    .string()
    .regex(/^(([01]\d|2[0-3]):[0-5]\d|off)$/, 'must be a time of day such as 03:15, or off')
    .default('03:15')
    .describe('Time of day (UTC) at which what is past its time is removed; off: never.'),
  RETENTION_PAYLOADS_DAYS: days('payloads').describe(
    'Days that bodies of notifications, and what was answered to them, are kept: read by migrate only, as the next three.',
  ),
  RETENTION_ATTEMPTS_DAYS: days('attempts').describe('Days that delivery attempts are kept.'),
  RETENTION_NOTIFICATIONS_DAYS: days('notifications').describe(
    'Days that notifications are kept, without their bodies.',
  ),
  RETENTION_QUOTES_DAYS: days('quotes').describe('Days that quotes are kept.'),
} as const;

type Settings = { [Name in keyof typeof retentionSettings]: z.infer<(typeof retentionSettings)[Name]> };

export const retentionDays = (config: Settings): RetentionDays => ({
  payloads: config.RETENTION_PAYLOADS_DAYS,
  attempts: config.RETENTION_ATTEMPTS_DAYS,
  notifications: config.RETENTION_NOTIFICATIONS_DAYS,
  quotes: config.RETENTION_QUOTES_DAYS,
});

/** @returns what does not fit together; null when all does. */
export function retentionFault(config: Settings): string | null {
  const { payloads, attempts, notifications } = retentionDays(config);
  if (notifications >= Math.max(payloads, attempts)) return null;
  return 'RETENTION_NOTIFICATIONS_DAYS must not be less than RETENTION_ATTEMPTS_DAYS or RETENTION_PAYLOADS_DAYS.';
}
