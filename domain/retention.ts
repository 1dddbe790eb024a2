/**
 * What is removed once its time is over, in this order, as a notification must not go before its attempts. `payloads`:
 * the bodies of notifications and what was answered to them; the rows stay.
 */
export const RETENTION_KINDS = ['payloads', 'attempts', 'notifications', 'quotes'] as const;
export type RetentionKind = (typeof RETENTION_KINDS)[number];

/** How many days each is kept at least, counted from its creation. */
export type RetentionDays = Readonly<Record<RetentionKind, number>>;
