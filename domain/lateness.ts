/** A span of time; null: it lasts. */
export interface Span {
  readonly from: Date;
  readonly to: Date | null;
}

/** What is known of one event and of what happened around it. */
export interface LatenessFacts {
  readonly createdAt: Date;
  /** When its last resend was ordered, if any: by an operator, its partner or a recovery. */
  readonly sentAgainAt: Date | null;
  readonly deliveredAt: Date | null;
  /** How it ended otherwise, and when; null while it is under way. */
  readonly endedAt: Date | null;
  readonly attempts: readonly {
    readonly at: Date;
    readonly outcome: string | null;
    readonly failure: string | null;
    readonly httpStatus: number | null;
  }[];
  /**
   * Holds, pauses of the delivery or of its partner, and outages of ours, in which no worker reached
   * Postgres, none reached Temporal, or our network reached nobody.
   */
  readonly interruptions: readonly LateReason[];
  /** The event before it of the same application, until its delivery, end, or the end of the wait for it. */
  readonly earlier: (Span & { readonly notificationId: string }) | null;
  readonly now: Date;
}

export type LateReason = Span & {
  readonly why:
    | 'failed'
    | 'unanswered'
    | 'held'
    | 'paused'
    | 'our_outage'
    | 'earlier_event'
    | 'no_free_slot'
    | 'sent_again';
  /** The answer, reason, person or event behind it; null when there is none. */
  readonly what: string | null;
};

/** A first attempt begins within a second. What waited longer for it has waited for something. */
const PROMPT_MS = 5_000;

/** The resend that delivered an event, or has to; null when it was delivered before. */
const neededResend = ({ sentAgainAt, deliveredAt }: Pick<LatenessFacts, 'sentAgainAt' | 'deliveredAt'>) =>
  sentAgainAt !== null && (deliveredAt === null || sentAgainAt < deliveredAt) ? sentAgainAt : null;

/** Milliseconds from the creation, or from its resend, to the delivery, or until now. */
export const latenessMs = (facts: Pick<LatenessFacts, 'createdAt' | 'sentAgainAt' | 'deliveredAt' | 'now'>) =>
  (facts.deliveredAt ?? facts.now).getTime() - (neededResend(facts) ?? facts.createdAt).getTime();

/**
 * Says why an event was late, in the order in which it happened; nothing for one that was delivered at
 * once.
 */
export function lateReasons(facts: LatenessFacts): readonly LateReason[] {
  const { createdAt, attempts, interruptions, earlier, now } = facts;
  const end = facts.deliveredAt ?? facts.endedAt ?? now;
  const found: LateReason[] = [
    ...failures(attempts),
    ...interruptions.filter(({ from, to }) => from < end && (to ?? now) > createdAt),
  ];
  const firstAt = attempts[0]?.at ?? end;
  const waited = firstAt.getTime() - createdAt.getTime() > PROMPT_MS;
  if (waited && earlier !== null && earlier.from < firstAt && (earlier.to ?? now) > createdAt) {
    // Its wait ended with its own first attempt at the latest.
    const to = attempts.length > 0 && (earlier.to ?? now) > firstAt ? firstAt : earlier.to;
    found.push({ from: createdAt, to, why: 'earlier_event', what: earlier.notificationId });
  }
  const resent = neededResend(facts);
  if (resent !== null) found.push({ from: resent, to: resent, why: 'sent_again', what: null });
  // Nothing else explains the wait before the first attempt.
  if (waited && !found.some(({ why, from }) => why !== 'failed' && why !== 'unanswered' && from < firstAt))
    found.push({
      from: createdAt,
      to: attempts.length === 0 && facts.endedAt === null ? null : firstAt,
      why: 'no_free_slot',
      what: null,
    });
  return found.toSorted((one, other) => one.from.getTime() - other.from.getTime());
}

/** Attempts that failed, those with the same answer together. */
function failures(attempts: LatenessFacts['attempts']): LateReason[] {
  const groups = new Map<string, { from: Date; to: Date; count: number }>();
  for (const { at, outcome, failure, httpStatus } of attempts) {
    if (outcome !== 'failed' && outcome !== 'unknown') continue;
    const what =
      outcome === 'unknown' ? '' : failure === 'http_status' ? String(httpStatus) : String(failure);
    const { from, count } = groups.get(what) ?? { from: at, count: 0 };
    groups.set(what, { from, to: at, count: count + 1 });
  }
  return [...groups].map(([what, { count, ...span }]) =>
    what === ''
      ? { ...span, why: 'unanswered', what: `${count}` }
      : { ...span, why: 'failed', what: count === 1 ? what : `${what} (${count} times)` },
  );
}

const WHY_HELD: Readonly<Record<string, string>> = {
  endpoint_gone: 'the endpoint answered 410 and was disabled',
  endpoint_failing: 'the endpoint had failed for 120 h and was disabled',
  endpoint_disabled: 'the endpoint was disabled by an operator of the service',
};

/** Why an event is or was held, for partners and operators. */
export const whyHeld = (reason: string | null) => WHY_HELD[reason ?? ''] ?? 'no endpoint was registered';

const OUTAGES: Readonly<Record<string, string>> = {
  temporal: 'Temporal',
  network: 'our own network reached nobody',
};

/** A reason as a partner can read it. */
export function reasonText({ why, what, from, to }: LateReason): string {
  const span = `${clock(from)} to ${to === null ? 'now' : clock(to)}`;
  switch (why) {
    case 'failed':
      return `your endpoint ${/^\d/.test(what ?? '') ? `answered ${what}` : `failed: ${what}`}, ${span}`;
    case 'unanswered':
      return `${what === '1' ? 'an attempt of ours has' : `${what} attempts of ours have`} no recorded answer, ${span}`;
    case 'held':
      return `held ${span}: ${whyHeld(what)}`;
    case 'paused':
      return `paused ${span}${what === null ? '' : ` by ${what}`}`;
    case 'sent_again':
      return `sent again at ${clock(from)}`;
    case 'our_outage':
      return `outage of ours ${span} (${OUTAGES[what ?? ''] ?? 'no worker, or no database'})`;
    case 'earlier_event':
      return `waited ${span} for the earlier event ${what} of its application`;
    case 'no_free_slot':
      return `waited ${span} for one of the 16 slots of your endpoint, or for a worker of ours`;
  }
}

/** `11-22 14:05:12Z` */
const clock = (at: Date) => `${at.toISOString().slice(5, 19).replace('T', ' ')}Z`;
