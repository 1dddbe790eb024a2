import { setTimeout as sleep } from 'node:timers/promises';
import { goodQuote } from '../support/api';
import { SHOP } from '../support/merchants';
import type { StormAnswer } from './asking';
import type { StormPartner } from './parties';
import type { StormSight } from './scene';

/** What lenders need of a scene. */
export type LenderScene = Pick<StormSight, 'partners' | 'ask' | 'serviceKey'>;

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
  scene: LenderScene,
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
      promised.push(
        await live(
          scene,
          partner,
          lives[number % lives.length] ?? [],
          `${prefix}${String(number).padStart(8 - prefix.length, '0')}`,
        ),
      );
      if (pauseMs > 0) await sleep(pauseMs);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lender));
  return promised;
}

async function live(
  scene: LenderScene,
  { partnerId, apiKey }: StormPartner,
  life: readonly string[],
  reference: string,
): Promise<Promised> {
  const quote = await insist(scene, {
    internal: false,
    path: '/v1/finance-quote',
    key: apiKey,
    body: { ...goodQuote, merchant_id: SHOP, partner_id: partnerId, merchant_reference: reference },
  });
  const { service_quote_id: quoteId, products } = quote.body.data;
  const opened = await insist(scene, {
    internal: true,
    path: '/internal/v1/credit-applications',
    key: scene.serviceKey,
    body: {
      lender: 'lender_a',
      lender_reference: reference,
      finance_link: products[0].merchant_finance_url,
    },
  });
  const applicationId: string = opened.body.data.credit_application_id;
  const statuses: string[] = [];
  for (const status of life) {
    await insist(scene, {
      internal: true,
      path: `/internal/v1/credit-applications/${applicationId}/lender-events`,
      key: scene.serviceKey,
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

async function insist(scene: LenderScene, wanted: Parameters<LenderScene['ask']>[0]): Promise<StormAnswer> {
  const until = performance.now() + LONGEST_WAIT_MS;
  for (;;) {
    const answer = await scene.ask(wanted);
    if (answer?.status === 200) return answer;
    const again = answer === null || answer.status === 500;
    if (!again || performance.now() > until) {
      throw new Error(`${wanted.path}: ${answer === null ? 'no answer' : JSON.stringify(answer)}`);
    }
    await sleep(100 + Math.random() * 200);
  }
}
