import { setTimeout as sleep } from 'node:timers/promises';
import { APPLICATIONS } from '../support/internal-api';
import { SHOP } from '../support/merchants';
import { quoteOf, type Asked, type StormAnswer } from './asking';
import type { StormPartner } from './parties';
import type { StormSight } from './scene';

/** What the service has promised to the lenders' side: it answered 200. */
export interface Promised {
  readonly quoteId: string;
  readonly applicationId: string;
  /** In this order, each told once it had been acknowledged. */
  readonly statuses: string[];
}

const LIVES = [
  ['submitted', 'declined'],
  ['submitted', 'accepted', 'signed'],
  ['submitted', 'referred', 'accepted', 'cancelled'],
  ['submitted'],
] as const;

/** 500 and no answer at all mean: ask again. Anything else is an answer that this run does not expect. */
const LONGEST_WAIT_MS = 120_000;

/** Opens applications and tells their lives, many at once; whatever dies meanwhile is asked again. */
export async function runLenders(
  scene: StormSight,
  options: {
    readonly applications: number;
    readonly atOnce: number;
    /** Pause of each lender between two applications, in milliseconds. */
    readonly pauseMs?: number;
    /** What is told of each in turn. */
    readonly lives?: readonly (readonly string[])[];
    /** Ends it before all are opened. */
    readonly stopped?: () => boolean;
    /** Of the lender's references, which have eight characters. Default: S. */
    readonly prefix?: string;
  },
): Promise<Promised[]> {
  const { applications, atOnce, pauseMs = 0, prefix = 'S', lives = LIVES } = options;
  const promised: Promised[] = [];
  let next = 0;
  const lender = async () => {
    while (next < applications && !options.stopped?.()) {
      const number = next;
      next += 1;
      const partner = scene.partners[number % scene.partners.length] as StormPartner;
      const reference = `${prefix}${String(number).padStart(8 - prefix.length, '0')}`;
      promised.push(await live(scene, partner, lives[number % lives.length] ?? [], reference));
      if (pauseMs > 0) await sleep(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lender));
  return promised;
}

async function live(
  scene: StormSight,
  partner: StormPartner,
  life: readonly string[],
  reference: string,
): Promise<Promised> {
  const lender = { internal: true, path: APPLICATIONS, key: scene.serviceKey };
  const wanted = quoteOf(partner, { merchant_id: SHOP, merchant_reference: reference });
  const quote = await insist(scene, wanted);
  const { service_quote_id: quoteId, products } = quote.body.data;
  const link: string = products[0].merchant_finance_url;
  const opened = await insist(scene, {
    ...lender,
    body: { lender: 'lender_a', lender_reference: reference, finance_link: link },
  });
  const applicationId: string = opened.body.data.credit_application_id;
  const statuses: string[] = [];
  for (const status of life) {
    await insist(scene, {
      ...lender,
      path: `${APPLICATIONS}/${applicationId}/lender-events`,
      body: {
        lender_event_id: `${reference}-${status}`,
        status,
        occurred_at: new Date().toISOString(),
      },
    });
    statuses.push(status);
  }
  return { quoteId, applicationId, statuses };
}

async function insist(scene: StormSight, wanted: Asked): Promise<StormAnswer> {
  const until = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const answer = await scene.ask(wanted);
    if (answer?.status === 200) return answer;
    const again = answer === null || answer.status === 500 || answer.status === 429;
    if (!again || performance.now() > until) {
      throw new Error(`${wanted.path}: ${answer === null ? 'no answer' : JSON.stringify(answer)}`);
    }
    await sleep(100 + Math.random() * 200);
  }
}
