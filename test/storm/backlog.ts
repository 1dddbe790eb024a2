import type { Database } from '../../db/postgres/connect';
import type { PartnersAnswer } from './parties';

/** Waits before the attempts, in seconds: as many as in production, and each step has its own length. */
export const LADDER = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as const;
/** Steps in which a delivery waits: the last attempt has none after it. */
export const STEPS = LADDER.length - 1;
/** Steps that are reached by attempts. Those beyond would take ten thousand. */
const ATTEMPTED_STEPS = 2;
const LONG_SECONDS = '3600';

/** How the partner answers the first event of an application of the backlog. */
interface Plan {
  readonly step: number;
  /** So many attempts fail; the last of them asks for no other within an hour. */
  readonly failures: number;
  /** The attempt after that fails too, so that the ladder continues with the step after its own. */
  readonly again: boolean;
  /** When that attempt is planned, in seconds after the loss. */
  readonly inSeconds: number;
}

export type Backlog = ReturnType<typeof planBacklog>;

/**
 * A backlog with as many deliveries in each step.
 * @param counts applications whose lender's references begin with B, and with W, which wait in the first
 * step
 * @param seconds from the loss to the earliest and to the latest planned attempt
 */
export function planBacklog(
  next: () => number,
  counts: { readonly B: number; readonly W: number },
  seconds: readonly [number, number],
) {
  const plans = new Map<string, Plan>();
  for (const prefix of ['B', 'W'] as const)
    for (let number = 0; number < counts[prefix]; number += 1) {
      const step = prefix === 'W' ? 1 : 1 + (number % STEPS);
      plans.set(`${prefix}${String(number).padStart(7, '0')}`, {
        step,
        failures: step > ATTEMPTED_STEPS ? 1 : step,
        again: step < STEPS && next() < 0.25,
        inSeconds: seconds[0] + next() * (seconds[1] - seconds[0]),
      });
    }
  const seen = new Map<string, number>();
  let reached = 0;

  const answer: PartnersAnswer = ({ body }) => {
    const { event_id, sequence, data } = JSON.parse(body) as {
      event_id: string;
      sequence: number;
      data: { lender_reference: string };
    };
    const plan = plans.get(data.lender_reference);
    if (plan === undefined || sequence !== 1) return null;
    const nth = (seen.get(event_id) ?? 0) + 1;
    seen.set(event_id, nth);
    if (nth < plan.failures) return { status: 503 };
    if (nth > plan.failures) return { status: nth === plan.failures + 1 && plan.again ? 503 : 200 };
    reached += 1;
    return { status: 503, headers: { 'retry-after': LONG_SECONDS } };
  };
  return {
    answer,
    /** Deliveries that have come to the step where they wait. */
    reached: () => reached,
    /**
     * Puts deliveries into their further steps, and plans their attempts. While Temporal is away a
     * delivery is nothing but its row, whichever way it came there.
     */
    async putInSteps({ sql }: Database): Promise<void> {
      const all = [...plans.values()];
      await sql`
        update deliveries d
        set step = p.step::int, next_attempt_at = service_now() + make_interval(secs => p.seconds::float8)
        from unnest(${[...plans.keys()]}::text[], ${all.map(({ step }) => String(step))}::text[],
          ${all.map(({ inSeconds }) => String(inSeconds))}::text[]) p (reference, step, seconds)
          join credit_applications a on a.lender_reference = p.reference
        where d.application_id = a.application_id and d.sequence = 1 and d.state = 'started'
          and d.next_attempt_at > service_now() + interval '5 minutes'`;
    },
  };
}
