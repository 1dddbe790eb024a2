import { setTimeout as sleep } from 'node:timers/promises';
import { quoteOf } from '../asking';
import { type Promised, runLenders } from '../lenders';
import type { StormPartner } from '../parties';
import { openTimeline, type ClusterScene } from './scene';

const CALLERS = 6;
/** Between two quotes of a caller. */
const PAUSE_MS = 150;
const LENDERS = 4;
/** Between two applications of a lender. */
const LENDER_PAUSE_MS = 700;

export type Load = ReturnType<typeof startLoad>;

/** Partners who ask for quotes, and lenders who report on applications, until they are stopped. */
export function startLoad(scene: ClusterScene) {
  let stopped = false;
  let refused = 0;
  const quotes: string[] = [];
  const quoteTimes = openTimeline();
  const promised: Promised[] = [];
  const caller = async (nth: number) => {
    const partner = scene.partners[nth % scene.partners.length] as StormPartner;
    while (!stopped) {
      const answer = await scene.ask(quoteOf(partner));
      if (answer?.status === 200) {
        quotes.push(answer.body.data.service_quote_id);
        quoteTimes.mark();
      } else refused += 1;
      await sleep(PAUSE_MS);
    }
  };
  const lend = async () => {
    for (let round = 0; !stopped; round += 1) {
      const prefix = `S${String(round).padStart(4, '0')}`;
      promised.push(...(await runLenders(scene, { applications: LENDERS, atOnce: LENDERS, prefix })));
      await sleep(LENDER_PAUSE_MS);
    }
  };
  const running = Promise.all([...Array.from({ length: CALLERS }, (_, nth) => caller(nth)), lend()]);
  // Looked at when it is stopped.
  running.catch(() => undefined);
  return {
    /** Ids of quotes that were answered 200. */
    quotes,
    quoteTimes,
    /** Quotes that were answered otherwise or not at all. */
    refused: () => refused,
    async stop() {
      stopped = true;
      await running;
      return promised;
    },
  };
}
