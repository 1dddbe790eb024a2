import { TEST_EVENT_TYPE } from '../domain/notification-states';
import { z } from 'zod';
import { APPLICATION_STATES } from '../domain/application-states';

/** Every amount that we send is in pounds with two decimals. */
export const ANSWERED_AMOUNT = '^\\d+\\.\\d{2}$';

export const answeredAmount = (example: string, description?: string) =>
  z.string().meta({ ...(description && { description }), pattern: ANSWERED_AMOUNT, examples: [example] });

/**
 * The answer to a call that succeeded.
 * @param id its name in the document
 */
export const answerSchema = <Data extends z.ZodRawShape>(id: string, data: Data) =>
  successOf(z.object(data)).meta({ id });

export const successOf = <Data extends z.ZodType>(data: Data) =>
  z.object({ success: z.literal(true).meta({ description: 'Always true.' }), data });

/** Bodies that the document shows, by name. */
export type Examples = Readonly<Record<string, { readonly summary: string; readonly value: unknown }>>;

/** An example of an answer to a call that succeeded. */
export const answered = <Body extends { readonly data: unknown }>(summary: string, data: Body['data']) => ({
  summary,
  value: { success: true, data },
});

/** Ids in paths and filters: prefixed ULIDs. */
export const ID_PATTERNS = {
  notification_id: 'ntf_[0-9A-HJKMNP-TV-Z]{26}',
  recovery_id: 'rcv_[0-9A-HJKMNP-TV-Z]{26}',
  credit_application_id: 'app_[0-9A-HJKMNP-TV-Z]{26}',
} as const;

export const EVENT_TYPES = [
  ...APPLICATION_STATES.map((state) => `credit_application.${state}` as const),
  TEST_EVENT_TYPE,
] as const;

export const momentField = (description: string) =>
  z.iso.datetime().meta({ description, examples: ['2026-11-21T12:00:00.120Z'] });

/** A plausible year, which Postgres can store. */
const inOurTime = (text: string) => /^20\d\d-/.test(text) && !Number.isNaN(Date.parse(text));

/**
 * With `T` and `Z` as capitals, which RFC 3339 also has in lower case, a colon in the offset, which ISO 8601 lets be left out, and a
 * plus that was not percent-encoded in a query, and so became a space.
 */
const canonicalMoment = (text: string) =>
  text
    .replace(/^([\d-]{10})t/, '$1T')
    .replace(/z$/, 'Z')
    .replace(/(:[\d.]+) (\d\d:?\d\d)$/, '$1+$2')
    .replace(/([+-]\d\d)(\d\d)$/, '$1:$2');

/** A moment that a partner sends, with Z or an offset. */
export const sentMoment = (field: string, description: string) =>
  z
    .string()
    .transform(canonicalMoment)
    .pipe(
      z.iso
        .datetime({
          offset: true,
          error: `${field} must be a moment of RFC 3339, such as 2026-11-21T12:00:00Z.`,
        })
        .refine(inOurTime, `${field} must lie between the years 2000 and 2099.`)
        .transform((text) => new Date(text)),
    )
    .meta({ description, format: 'date-time', examples: ['2026-11-21T00:00:00Z'] });

type About = readonly [description: string, ...examples: unknown[]];
const about = ([description, ...examples]: About) => ({
  description,
  ...(examples.length > 0 && { examples }),
});

export const text = (...of: About) => z.string().meta(about(of));
export const textOrNull = (...of: About) => z.string().nullable().meta(about(of));
export const whole = (...of: About) => z.int().meta(about(of));
export const wholeOrNull = (...of: About) => z.int().nullable().meta(about(of));
export const count = (...of: About) => z.int().min(0).meta(about(of));

export const notificationIdField = text('The notification.', 'ntf_01KAF1Z4Q0T6M5S7Y2W3X4V5B9');
export const eventIdField = text(
  'The `event_id` of the event and its header `webhook-id`.',
  'evt_01KAF1Z4Q0T6M5S7Y2W3X4V5B9',
);
export const applicationIdField = text('The application.', 'app_01KAF1Z4Q0T6M5S7Y2W3X4V5B6');
