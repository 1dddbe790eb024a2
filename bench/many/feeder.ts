import { ulid } from 'ulid';
import { applicationEventText } from '../../contracts/webhook-event';
import { createApplication } from '../../db/applications/create';
import { recordLenderEvent } from '../../db/applications/lender-events';
import { connectDatabase } from '../../db/postgres/connect';
import type { ServiceCaller } from '../../db/service-keys';
import type { WriteChange } from '../../domain/application';
import { pause } from '../harness/bench';
import { serveMessages } from '../harness/children';
import type { Moment } from '../harness/receiver';
import { monotonicMs } from '../harness/rounds';

/** Stores changes of applications as API processes do: by the same functions, through a pool of the API's login. */

/** To a feeder. */
export interface Feed {
  readonly service: ServiceCaller;
  /** The quotes that applications are opened from, each of another partner. */
  readonly quoteIds: readonly string[];
  readonly count: number;
  /** null: as fast as they are stored, and applications only. Else every second change is a lender's event where one is possible. */
  readonly perSecond: number | null;
}

/** From a feeder: when each event was committed. */
export interface Fed {
  readonly committed: readonly Moment[];
}

/** A lender's event comes so long after the application was opened; its first event has been delivered then. */
const EVENT_AFTER_MS = 2_000;
const WAIT_SECONDS = 3_600;
const POOL = 5;

const [url = ''] = process.argv.slice(2);
const database = connectDatabase({
  url,
  poolSize: POOL,
  applicationName: 'pfqs bench feeder',
  statementTimeoutMs: 30_000,
});

async function feed({ service, quoteIds, count, perSecond }: Feed): Promise<Fed> {
  const committed: Moment[] = [];
  const opened: { readonly applicationId: string; readonly atMs: number }[] = [];
  const startedMs = monotonicMs();

  async function store(nth: number): Promise<void> {
    let eventId = '';
    const write: WriteChange = (change) => {
      eventId = change.eventId;
      return applicationEventText(change);
    };
    const oldest = opened[0];
    const mature = oldest !== undefined && monotonicMs() - oldest.atMs > EVENT_AFTER_MS;
    if (perSecond !== null && nth % 2 === 1 && mature) {
      opened.shift();
      await accept(oldest.applicationId, service, write);
    } else {
      const applicationId = await open(quoteIds[nth % quoteIds.length] ?? '', service, write);
      opened.push({ applicationId, atMs: monotonicMs() });
    }
    committed.push([eventId, monotonicMs()]);
  }

  if (perSecond === null) {
    let next = 0;
    const take = async () => {
      while (next < count) await store(next++);
    };
    await Promise.all(Array.from({ length: POOL }, take));
  } else {
    const paced = Array.from({ length: count }, async (_, nth) => {
      await pause(startedMs + (nth * 1_000) / perSecond - monotonicMs());
      await store(nth);
    });
    await Promise.all(paced);
  }
  return { committed };
}

async function open(quoteId: string, service: ServiceCaller, write: WriteChange): Promise<string> {
  const id = ulid();
  const answer = await createApplication(
    database.db,
    {
      service,
      lender: service.lender,
      lenderReference: id,
      quoteId,
      merchantReference: null,
      creditProduct: 'Classic 12',
      loanPence: 90_000,
      depositPence: 10_000,
      requestId: `rq_${id}`,
    },
    write,
  );
  if (answer.kind !== 'created') throw new Error(`an application was not opened: ${answer.kind}`);
  return answer.application.applicationId;
}

async function accept(applicationId: string, service: ServiceCaller, write: WriteChange): Promise<void> {
  const event = { lenderEventId: ulid(), status: 'accepted', occurredAt: new Date() } as const;
  const wanted = { ...event, applicationId, service, requestId: `rq_${event.lenderEventId}` };
  const answer = await recordLenderEvent(database.db, wanted, { write, waitSeconds: WAIT_SECONDS });
  if (answer.kind !== 'recorded' || answer.event.verdict !== 'applied')
    throw new Error('an event of a lender was not applied');
}

serveMessages(feed, () => database.close());
