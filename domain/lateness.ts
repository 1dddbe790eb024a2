/** A span of time; null: it lasts. */
export interface Span {
  readonly from: Date;
  readonly to: Date | null;
}

/** What is known of one event and of what happened around it. */
export interface LatenessFacts {
  readonly createdAt: Date;
  readonly deliveredAt: Date | null;
  /** How it ended otherwise, and when; null while it is under way. */
  readonly endedAt: Date | null;
  readonly attempts: readonly {
    readonly at: Date;
    readonly outcome: string | null;
    readonly failure: string | null;
    readonly httpStatus: number | null;
  }[];
  readonly holds: readonly (Span & { readonly reason: string | null })[];
  /** Of the delivery itself, and of its partner. */
  readonly pauses: readonly (Span & { readonly by: string | null })[];
  /** Our own: no worker reached Postgres, or none reached Temporal. */
  readonly outages: readonly (Span & { readonly kind: 'workers' | 'temporal' })[];
  /** The event before it of the same application, until its delivery, end, or the end of the wait for it. */
  readonly earlier: (Span & { readonly notificationId: string }) | null;
  readonly now: Date;
}

export type LateReason = Span & {
  readonly why: 'failed' | 'unanswered' | 'held' | 'paused' | 'our_outage' | 'earlier_event' | 'no_free_slot';
  /** What was answered, why it was held, who paused it, what it waited for; null when there is no more to say. */
  readonly what: string | null;
};

/** A first attempt begins within a second. What waited longer for it has waited for something. */
const PROMPT_MS = 5_000;

/** Milliseconds from the creation to the delivery, or until now while there is none. */
export const latenessMs = ({
  createdAt,
  deliveredAt,
  now,
}: Pick<LatenessFacts, 'createdAt' | 'deliveredAt' | 'now'>) =>
  (deliveredAt ?? now).getTime() - createdAt.getTime();

/** Says why an event was late, in the order in which it happened; nothing for one that was delivered at once. */
export function lateReasons(facts: LatenessFacts): readonly LateReason[] {
  const { createdAt, attempts, holds, pauses, outages, earlier, now } = facts;
  const end = facts.deliveredAt ?? facts.endedAt ?? now;
  const during = <One extends Span>(all: readonly One[]) =>
    all.filter(({ from, to }) => from < end && (to ?? now) > createdAt);
  const found: LateReason[] = [
    ...failures(attempts),
    ...during(holds).map((one) => ({ ...spanOf(one), why: 'held' as const, what: one.reason })),
    ...during(pauses).map((one) => ({ ...spanOf(one), why: 'paused' as const, what: one.by })),
    ...during(outages).map((one) => ({ ...spanOf(one), why: 'our_outage' as const, what: one.kind })),
  ];
  const firstAt = attempts[0]?.at ?? end;
  const waited = firstAt.getTime() - createdAt.getTime() > PROMPT_MS;
  if (waited && earlier !== null && earlier.from < firstAt && (earlier.to ?? now) > createdAt)
    found.push({ ...spanOf(earlier), why: 'earlier_event', what: earlier.notificationId });
  // Nothing else explains the wait before the first attempt: as many others were being sent to its endpoint.
  if (waited && !found.some(({ why, from }) => why !== 'failed' && why !== 'unanswered' && from < firstAt))
    found.push({
      from: createdAt,
      to: attempts.length === 0 && facts.endedAt === null ? null : firstAt,
      why: 'no_free_slot',
      what: null,
    });
  return found.toSorted((one, other) => one.from.getTime() - other.from.getTime());
}

const spanOf = ({ from, to }: Span): Span => ({ from, to });

/** Attempts that failed, those with the same answer together. */
function failures(attempts: LatenessFacts['attempts']): LateReason[] {
  const groups = new Map<string, { from: Date; to: Date; count: number; why: 'failed' | 'unanswered' }>();
  for (const { at, outcome, failure, httpStatus } of attempts) {
    if (outcome !== 'failed' && outcome !== 'unknown') continue;
    const what =
      outcome === 'unknown' ? '' : failure === 'http_status' ? String(httpStatus) : String(failure);
    const group = groups.get(what);
    if (group === undefined)
      groups.set(what, { from: at, to: at, count: 1, why: outcome === 'unknown' ? 'unanswered' : 'failed' });
    else Object.assign(group, { to: at, count: group.count + 1 });
  }
  return [...groups].map(([what, { count, ...group }]) => ({
    ...group,
    what: group.why === 'unanswered' ? `${count}` : `${what}${count === 1 ? '' : ` (${count} times)`}`,
  }));
}
