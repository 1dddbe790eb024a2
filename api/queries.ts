import { LRUCache } from 'lru-cache';
import { MOST_MINUTES_AHEAD } from '../contracts/credit-application';
import { applicationEventText } from '../contracts/webhook-event';
import { createApplication, warnOfCrowdedQuote, type NewApplication } from '../db/applications/create';
import {
  applicationExists,
  findApplication,
  findApplicationForPartner,
  type Application,
} from '../db/applications/applications';
import { recordLenderEvent, type NewLenderEvent } from '../db/applications/lender-events';
import { simulateApplication, simulateLenderEvent } from '../db/applications/simulate';
import { findEndpointForPartner } from '../db/endpoints/endpoints';
import { livePublicKeys } from '../db/endpoints/key-pairs';
import { readCursorSecret } from '../db/keys';
import { findServiceKeysByHash, type KeyBinding, type ServiceCaller } from '../db/service-keys';
import { insertTestNotification, type NewTestNotification } from '../db/notifications/create';
import { readProgress } from '../db/notifications/notification';
import { findForPartner, listForPartner, type PageWanted } from '../db/notifications/partner';
import { countForPartner, recoverForPartner, recoveryProgress } from '../db/notifications/recovery';
import type { RecoveryProgress } from '../db/notifications/recovery';
import { resendForPartner } from '../db/notifications/resend';
import type { Database, Db } from '../db/postgres/connect';
import type { Tenant } from '../domain/tenant';
import type { Config } from '../runtime/config/config';
import type { Tracing } from '../runtime/telemetry/tracing';
import { withTimeout } from '../timing/timing';
import { refused } from './errors';
import type { ApiPools } from './pools';
import { createSlots, type Slots } from './slots';

type Timed = Pick<Config, 'DATABASE_TIMEOUT_MS'>;
type Run<Given extends unknown[], Found> = (db: Db, ...given: Given) => Promise<Found>;

export type ApiQueries = ReturnType<typeof apiQueries>;

export interface WithQueries {
  readonly queries: ApiQueries;
}

/**
 * Each statement has a timeout of DATABASE_TIMEOUT_MS, and a transaction whose caller was told that it
 * failed is rolled back. Partners have pools of their own, and each partner and lender a share of its
 * pool. Those that store are traced.
 */
export function apiQueries(
  { own, writes, reads }: Omit<ApiPools, 'inserts'>,
  config: Timed & Pick<Config, 'LENDER_EVENT_WAIT_SECONDS'>,
  tracing: Tracing | null,
) {
  const step =
    <Given extends unknown[], Stored>(name: string, store: (...given: Given) => Promise<Stored>) =>
    (...given: Given) =>
      tracing === null ? store(...given) : tracing.step(name, () => store(...given));
  /** Stored with a notification, so that its delivery joins the trace. */
  const traced = <Wanted>(wanted: Wanted) => ({ ...wanted, traceParent: tracing?.current() ?? null });
  const waitSeconds = config.LENDER_EVENT_WAIT_SECONDS;

  const on =
    <Given extends unknown[], Found>(run: Run<Given, Found>, what: string) =>
    (...given: Given) =>
      begin(own.db, (db) => run(db, ...given), { config, what }).answer;
  const forPartner = {
    reads: sharedPool(reads, config),
    writes: sharedPool(writes, config),
  };
  const forLender = sharedPool(own, config);
  const counts = createSlots(1, COUNT_WAIT_MS);
  /** One count of a partner at a time, whatever the environment. */
  const counted = <Given extends { readonly owner: Tenant }, Found>(
    count: (wanted: Given) => Promise<Found>,
  ) =>
    inTurn(counts, ofOwner, count, ({ owner: { environment } }) =>
      refused('RECOVERY_UNDER_WAY', environment, null),
    );

  const byOwner = ({ partnerId }: Pick<Tenant, 'partnerId'>) => partnerId;
  const bySecond = (_id: string, { partnerId }: Pick<Tenant, 'partnerId'>) => partnerId;
  const ofOwner = ({ owner }: { readonly owner: Tenant }) => owner.partnerId;

  const simulated = <Wanted extends Pick<Tenant, 'partnerId'>, Found>(
    run: (db: Db, wanted: Wanted, write: typeof applicationEventText) => Promise<Found>,
    what: string,
  ) =>
    forPartner.writes(byOwner, (db, wanted: Wanted) => run(db, traced(wanted), applicationEventText), what);

  const byLender = ({ service }: { readonly service: ServiceCaller }) => service.lender;
  const storeApplication = forLender(
    byLender,
    (db, wanted: NewApplication) => createApplication(db, traced(wanted), applicationEventText),
    'credit application',
  );
  const storeLenderEvent = forLender(
    byLender,
    (db, wanted: NewLenderEvent) =>
      recordLenderEvent(db, traced(wanted), {
        write: applicationEventText,
        waitSeconds,
        mostAheadMs: MOST_MINUTES_AHEAD * 60_000,
      }),
    'lender event',
  );
  return {
    storeTest: step(
      'store notification',
      forPartner.writes(
        byOwner,
        (_db, wanted: NewTestNotification) => insertTestNotification(writes.sql, traced(wanted)),
        'test notification',
      ),
    ),
    readProgress: forPartner.writes(
      bySecond,
      (db, id: string, _of: Tenant) => readProgress(db, id),
      'test notification',
    ),
    listNotifications: forPartner.reads(
      byOwner,
      (db, wanted: PageWanted) => listForPartner(db, wanted),
      'notifications',
    ),
    findNotification: forPartner.reads(bySecond, findForPartner, 'notification'),
    cursorSecret: on(readCursorSecret, 'cursor secret'),
    resendNotification: step(
      'resend notification',
      forPartner.writes((_id, { owner }) => owner.partnerId, resendForPartner, 'resend'),
    ),
    countRecoverable: counted(forPartner.reads(ofOwner, countForPartner, 'count')),
    recoverNotifications: step(
      'store recovery',
      counted(forPartner.writes(ofOwner, recoverForPartner, 'recovery')),
    ),
    recoveryProgress: rarely(forPartner.reads(bySecond, recoveryProgress, 'recovery')),
    findPartnerApplication: forPartner.reads(bySecond, findApplicationForPartner, 'credit application'),
    // Of calls that meet at the index of a quote's numbers, one could lose against every later one.
    simulateApplication: step(
      'store application',
      inTurn(
        createSlots(1, config.DATABASE_TIMEOUT_MS),
        ({ quoteId }: { readonly quoteId: string }) => quoteId,
        simulated(simulateApplication, 'simulated application'),
        () => refused('RATE_LIMIT_EXCEEDED', null),
      ),
    ),
    simulateEvent: step('store lender event', simulated(simulateLenderEvent, 'simulated event')),
    webhookEndpoint: forPartner.reads(byOwner, findEndpointForPartner, 'webhook endpoint'),
    webhookKeys: forPartner.reads(byOwner, livePublicKeys, 'webhook keys'),
    // Each key stands for its lender, which is not known yet.
    findServiceKeys: forLender(
      (hashes: readonly Buffer[]) => hashes.map((hash) => hash.toString('hex')).join(),
      findServiceKeysByHash,
      'service keys',
    ),
    createApplication: step('store application', storeApplication),
    warnOfCrowdedQuote: forLender(
      ({ lender }: Application) => lender,
      warnOfCrowdedQuote,
      'applications of a quote',
    ),
    recordLenderEvent: step('store lender event', storeLenderEvent),
    findApplication: forLender(
      (_id: string, { lender }: KeyBinding) => lender,
      findApplication,
      'credit application',
    ),
    applicationExists: forLender(
      (_id: string, { lender }: KeyBinding) => lender,
      (db, id: string, _of: KeyBinding) => applicationExists(db, id),
      'credit application',
    ),
  };
}

/** @param full what a call throws that has waited for too long */
const inTurn =
  <Given, Found>(
    slots: Slots,
    whose: (given: Given) => string,
    run: (given: Given) => Promise<Found>,
    full: (given: Given) => Error,
  ) =>
  async (given: Given) => {
    const release = await slots(whose(given), () => full(given));
    return run(given).finally(release);
  };

interface Beginning {
  readonly config: Timed;
  readonly what: string;
}

/** `ended` resolves when Postgres is free of it, `answer` earlier when that takes too long. */
function begin<Found>(db: Db, run: (db: Db) => Promise<Found>, { config, what }: Beginning) {
  let gaveUp = false;
  const check = () => {
    if (gaveUp) throw new Error(`${what}: rolled back, as the caller was told that it failed`);
  };
  const transaction: Db['transaction'] = (work, options) =>
    db.transaction(async (tx) => {
      check();
      const done = await work(tx);
      check();
      return done;
    }, options);
  const work = run(Object.assign(Object.create(db) as Db, { transaction }));
  const answer = withTimeout(work, config.DATABASE_TIMEOUT_MS, what).finally(() => (gaveUp = true));
  const ended = work.then(
    () => undefined,
    () => undefined,
  );
  return { answer, ended };
}

/** A count takes 40 ms at most. */
const COUNT_WAIT_MS = 2_000;
/** A connection on which nothing comes back is given up after the timeout and two seconds. */
const LOST_AFTER_MS = 2_500;

/**
 * A pool of which each partner, or each lender, has at most half, so that another one is soon served.
 * @returns a function that makes a call of a statement; `whose` reads the partner or lender from what it is given
 */
function sharedPool({ db, sql }: Database, config: Timed) {
  const slots = createSlots(Math.max(1, Math.floor(sql.options.max / 2)), config.DATABASE_TIMEOUT_MS);
  return <Given extends unknown[], Found>(
      whose: (...given: Given) => string,
      run: Run<Given, Found>,
      what: string,
    ) =>
    async (...given: Given): Promise<Found> => {
      const release = await slots(whose(...given), () => refused('RATE_LIMIT_EXCEEDED', null));
      const { answer, ended } = begin(db, (own) => run(own, ...given), { config, what });
      const lost = setTimeout(release, config.DATABASE_TIMEOUT_MS + LOST_AFTER_MS).unref();
      void ended.then(() => {
        clearTimeout(lost);
        release();
      });
      return answer;
    };
}

/** How many times as long as it took an answer is remembered, so that a partner costs at most a twentieth of a core. */
const REMEMBERED_TIMES = 20;
const QUICK_MS = 50;

/** The progress of a recovery is counted anew, once for calls at the same time; that of a million takes a second or two. */
function rarely(read: (id: string, of: Tenant) => Promise<RecoveryProgress | null>): typeof read {
  const remembered = new LRUCache<string, RecoveryProgress>({ max: 1_000, ttl: 1 });
  const underWay = new Map<string, Promise<RecoveryProgress | null>>();

  async function readNow(key: string, id: string, of: Tenant): Promise<RecoveryProgress | null> {
    const startedAt = performance.now();
    const found = await read(id, of);
    const tookMs = performance.now() - startedAt;
    if (found !== null && tookMs > QUICK_MS) remembered.set(key, found, { ttl: REMEMBERED_TIMES * tookMs });
    return found;
  }
  return async (id, of) => {
    const key = `${of.partnerId} ${of.environment} ${id}`;
    const known = remembered.get(key) ?? underWay.get(key);
    if (known !== undefined) return known;
    const reading = readNow(key, id, of).finally(() => underWay.delete(key));
    underWay.set(key, reading);
    return reading;
  };
}
