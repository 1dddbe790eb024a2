import { setTimeout as sleep } from 'node:timers/promises';
import type { Finding } from './finding';
import type { StormSight } from './scene';

const CALLERS = 4;
const PAUSE_MS = 1_000;
/** How long the limit may take to be met once nothing is killed any more. */
export const PATIENCE_MS = 120_000;

export interface Tested {
  readonly accepted: number;
  readonly refused: number;
  /** Answers that this run does not expect. */
  readonly astray: readonly string[];
}

/** A partner that asks for one test notification after another while everything around it is killed. */
export function runTester(scene: StormSight) {
  let until: number | null = null;
  let [accepted, refused] = [0, 0];
  const astray: string[] = [];

  async function call(): Promise<void> {
    const answer = await scene.ask({
      internal: false,
      path: '/v1/notifications/test',
      key: scene.tester.apiKey,
      body: null,
    });
    if (answer === null) return;
    if (answer.status < 300) accepted += 1;
    else if (answer.body.error?.code === 'TEST_NOTIFICATION_LIMIT_REACHED') refused += 1;
    // The kills': while Postgres does not answer, two calls fail and others wait behind them, until they are told to come again.
    else if (answer.status !== 500 && answer.body.error?.code !== 'RATE_LIMIT_EXCEEDED')
      astray.push(JSON.stringify(answer));
  }
  const calling = Array.from({ length: CALLERS }, async () => {
    while (until === null || (performance.now() < until && refused === 0)) {
      await call();
      await sleep(PAUSE_MS);
    }
  });
  return {
    /** Ends it once it has met the limit, or after `timeoutMs`. */
    async stop(timeoutMs: number): Promise<Tested> {
      until = performance.now() + timeoutMs;
      await Promise.all(calling);
      return { accepted, refused, astray };
    },
  };
}

/** I2, once everything has ended. */
export async function limited({ database, tester }: StormSight, tested: Tested): Promise<Finding> {
  const months = await database.sql<{ delivered: number; failed: number; reserved: number }[]>`
    select delivered, failed, reserved from monthly_counts where partner_id = ${tester.partnerId}`;
  const sum = (what: 'delivered' | 'failed') => months.reduce((total, month) => total + month[what], 0);
  return {
    invariant: 'I2  never more than 100 test notifications are delivered in a month',
    looked: tested.accepted,
    seen: `${tested.accepted} accepted, ${tested.refused} refused; ${sum('delivered')} delivered, ${sum('failed')} failed`,
    offenders: [
      ...tested.astray,
      ...months
        .filter(({ delivered, reserved }) => delivered > 100 || reserved !== 0)
        .map((month) => JSON.stringify(month)),
      ...(tested.refused > 0 ? [] : ['the limit was never met']),
    ],
  };
}
