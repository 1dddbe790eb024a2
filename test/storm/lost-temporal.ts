import { setTimeout as sleep } from 'node:timers/promises';
import { createdMs } from '../../db/notifications/notification';
import { opsJson } from '../ops/run';
import { orderDelivery } from '../support/histories';
import { killableProductionTemporal } from '../../testbed/production-temporal';
import { random, shuffled } from '../support/random';
import { LADDER, planBacklog, STEPS, type Backlog } from './backlog';
import type { Finding } from './finding';
import { arrivals } from './received';
import { reportText } from './findings';
import { askWithoutTemporal, noKills, type Kills } from './killer';
import { runLenders } from './lenders';
import { conclude, type StormPlan } from './run';
import { openStorm, type StormScene } from './scene';
import { PATIENCE_MS, runTester } from './tester';

type LossPlan = Pick<StormPlan, 'seed' | 'say'> & { readonly backlog: number };

/** Applications of which a later event waits for the first. */
const WAITING = 60;
/** Deliveries that an operator pauses one by one. */
const PAUSED = 60;
/** The loss comes then at the latest, however many of the backlog are in their steps. */
const BUILT_SECONDS = 600;
/** The attempts of the backlog are planned for this span after the loss, in seconds. */
const PLANNED_SECONDS = [40, 190] as const;
/** Row 118. */
const WITHIN_SECONDS = 300;
/** While the lost ones are started again, new events come within this time: 99 of 100, and all. */
const NEW_EVENT_MS = 5_000;
const EVERY_NEW_EVENT_MS = 20_000;
/** Deliveries with less time before their attempt are not paused, as it may come first. */
const SETTLE_MS = 15_000;

/** A delivery under way, as its row has it. */
interface Delivery {
  readonly id: string;
  readonly eventId: string;
  readonly partnerId: string;
  readonly applicationId: string | null;
  readonly sequence: number | null;
  readonly state: string;
  readonly generation: number;
  readonly step: number;
  readonly attempts: number;
  /** Unix milliseconds. */
  readonly plannedMs: number | null;
  readonly paused: boolean;
  /** A workflow of its generation has read the row, or it is queued or held. */
  readonly opened: boolean;
}

/**
 * A steady load and a backlog in all steps of the ladder. Then Temporal is killed, its databases are
 * deleted, and an empty one takes its place at the same address.
 */
export async function runLoss(plan: LossPlan) {
  const { backlog: applications, say } = plan;
  const next = random(plan.seed);
  const startedAt = performance.now();
  const seconds = () => Math.round((performance.now() - startedAt) / 1_000);
  let answer: Backlog['answer'] = () => null;
  const scene = await openStorm({
    partners: 10,
    apis: 1,
    workers: 2,
    openTemporal: killableProductionTemporal,
    answer: (received) => answer(received),
    // As in production, but for the steps.
    environment: { DELIVERY_LADDER_SECONDS: LADDER.join(), RECONCILE_AFTER_MS: '60000' },
  });
  const tester = runTester(scene);
  let over = false;
  try {
    const load = runLenders(scene, { applications: 9_999, atOnce: 2, pauseMs: 2_000, stopped: () => over });
    load.catch(() => undefined);

    const backlog = planBacklog(next, { B: applications, W: WAITING }, PLANNED_SECONDS);
    answer = backlog.answer;
    const promised = await runLenders(scene, { applications, atOnce: 12, prefix: 'B', lives: [[]] });
    say(`${seconds()} s: a backlog of ${promised.length} is stored`);
    const reached = async (count: number) => {
      while (backlog.reached() < count && seconds() < BUILT_SECONDS) await sleep(200);
    };
    await reached(applications);
    const lives = [['submitted']];
    promised.push(...(await runLenders(scene, { applications: WAITING, atOnce: 8, prefix: 'W', lives })));
    await reached(applications + WAITING);
    say(`${seconds()} s: ${backlog.reached()} deliveries wait in their steps`);

    const kills = noKills();
    const loss = await lose(scene, plan, { seconds, next, backlog, kills });
    over = true;
    promised.push(...(await load));
    const record = { promised, tested: await tester.stop(PATIENCE_MS), kills };
    const { findings, report } = await conclude(scene, record, 120_000, seconds);
    const own = await lossFindings(scene, plan, loss);
    return { findings: [...own, ...findings], report: [reportText(own), report].join('\n') };
  } finally {
    over = true;
    await tester.stop(0);
    await scene.close();
  }
}

/** @returns what was seen of the loss; moments are in Unix milliseconds */
async function lose(
  scene: StormScene,
  { say }: LossPlan,
  given: {
    seconds: () => number;
    next: () => number;
    backlog: Backlog;
    kills: Kills;
  },
) {
  const { seconds, next, backlog, kills } = given;
  const { temporal, database, workers, postgres } = scene;
  const pausedPartner = scene.partners.at(-1)?.partnerId ?? '';
  await opsJson(postgres.url, 'partners', 'pause-deliveries', pausedPartner, '--environment', 'sandbox');
  const waiting = [...(await underWay(scene)).values()].filter(
    ({ plannedMs, partnerId }) => (plannedMs ?? 0) > Date.now() + SETTLE_MS && partnerId !== pausedPartner,
  );
  const orders = { database, client: temporal.client };
  for (const { id } of shuffled(waiting, next).slice(0, PAUSED)) await orderDelivery(orders, 'pause', id);

  await temporal.kill();
  kills.counts.temporal += 1;
  await askWithoutTemporal(scene, kills);
  // Sends that were under way end by themselves.
  await sleep(1_500);
  await backlog.putInSteps(database);
  const untilMs = Date.now() + PLANNED_SECONDS[1] * 1_000;
  const lost = [...(await underWay(scene)).values()];
  say(`${seconds()} s: Temporal is gone, and ${lost.length} deliveries are under way`);
  await temporal.forget();
  await temporal.start();
  const readyMs = Date.now();
  say(`${seconds()} s: a new one is there`);
  const serving = (async () => {
    for (const worker of workers) await worker.ready(120_000);
    return Date.now();
  })();

  const started = new Map(lost.filter(({ state }) => state === 'started').map((one) => [one.id, one]));
  const lostCount = started.size;
  let saidAt = seconds();
  let now = await underWay(scene);
  for (;;) {
    for (const before of started.values()) if (isBack(before, now.get(before.id))) started.delete(before.id);
    if (started.size === 0 || Date.now() > readyMs + WITHIN_SECONDS * 1_000) break;
    if (seconds() >= saidAt + 10)
      say(`${(saidAt = seconds())} s: ${started.size} of ${lostCount} lost workflows are missing`);
    await sleep(500);
    now = await underWay(scene);
  }
  const backMs = Date.now();
  say(`${seconds()} s: ${started.size} lost workflows were not started again`);

  // Nothing may have been sent to these until now, though their time has come.
  await sleep(Math.max(untilMs + 2_000 - Date.now(), 0));
  const resumedMs = Date.now();
  await opsJson(postgres.url, 'partners', 'resume-deliveries', pausedPartner, '--environment', 'sandbox');
  const after = { database, client: temporal.client };
  for (const { id, paused } of (await underWay(scene)).values())
    if (paused) await orderDelivery(after, 'resume', id);
  return {
    lost,
    pausedPartner,
    /** When the new Temporal was ready, when the workers were, and when all was back. */
    readyMs,
    servedMs: await serving,
    backMs,
    resumedMs,
    /** Lost workflows that were not started again in time. */
    missing: [...started.keys()],
    /** Rows when all were back. */
    afterwards: now,
  };
}

async function underWay({ database }: StormScene): Promise<ReadonlyMap<string, Delivery>> {
  const rows = await database.sql<Delivery[]>`
    select d.notification_id as id, n.event_id as "eventId", d.partner_id as "partnerId",
      d.application_id as "applicationId", d.sequence, d.state, d.generation,
      d.step, d.attempts, (extract(epoch from d.next_attempt_at) * 1000)::float8 as "plannedMs", d.paused_at is not null as paused,
      d.state <> 'started' or d.checked_at is not null as opened
    from deliveries d join notifications n using (notification_id)`;
  return new Map(rows.map((row) => [row.id, row]));
}

/** Whether a workflow of a later generation has read its row, or it has ended meanwhile. */
const isBack = (before: Delivery, now: Delivery | undefined) =>
  now === undefined || (now.generation > before.generation && now.opened);

async function lossFindings(
  scene: StormScene,
  { backlog }: LossPlan,
  loss: Awaited<ReturnType<typeof lose>>,
): Promise<Finding[]> {
  const { lost, missing, readyMs, servedMs, backMs, resumedMs, afterwards, pausedPartner } = loss;
  const { came } = arrivals(scene);
  const after = (eventId: string, ms = readyMs) => (came.get(eventId) ?? []).filter((at) => at > ms);
  const inLadder = lost.filter(({ plannedMs, state }) => plannedMs !== null && state === 'started');
  const isPaused = (one: Delivery) => one.paused || one.partnerId === pausedPartner;
  const perStep = Array.from(
    { length: STEPS },
    (_, at) => inLadder.filter(({ step }) => step === at + 1).length,
  );

  const still = inLadder.flatMap((before) => {
    const now = afterwards.get(before.id);
    return now !== undefined && now.attempts === before.attempts ? [{ before, now }] : [];
  });
  const going = inLadder.filter((one) => !isPaused(one));
  const firsts = going.flatMap((one) => {
    const [at] = after(one.eventId);
    return at === undefined || one.plannedMs === null ? [] : [{ one, at, plannedMs: one.plannedMs }];
  });
  const late = (planned: (plannedMs: number) => boolean) =>
    spread(firsts.filter(({ plannedMs }) => planned(plannedMs)).map(({ at, plannedMs }) => at - plannedMs));
  const failedAgain = firsts.flatMap(({ one, at }) => {
    const again = after(one.eventId, at)[0];
    return again === undefined ? [] : [{ one, gapMs: again - at }];
  });
  const stopped = lost.filter(isPaused);
  const first = await scene.database.sql<{ id: string; eventId: string }[]>`
    select notification_id as id, event_id as "eventId" from notifications
    where sequence = 1 and partner_id <> ${pausedPartner}`;
  const news = first.flatMap(({ id, eventId }) => {
    const [at, ms] = [came.get(eventId)?.[0], createdMs(id)];
    return ms > servedMs && ms < backMs && at !== undefined
      ? [{ eventId, ms: at - ms, sinceMs: ms - servedMs }]
      : [];
  });
  return [
    {
      invariant: `every lost workflow is started again within ${WITHIN_SECONDS} s`,
      looked: inLadder.length,
      seen: `${lost.filter(({ state }) => state === 'started').length} were lost; ${((backMs - readyMs) / 1_000).toFixed(1)} s after the new Temporal, ${((backMs - servedMs) / 1_000).toFixed(1)} s after the workers had found it`,
      offenders: missing,
    },
    {
      invariant: 'every delivery is in its own step, with its attempts, its plan and its pause',
      looked: still.length,
      seen: `lost in each step: ${perStep.join(', ')}; ${still.length} still waited when all were back`,
      offenders: [
        ...perStep.flatMap((count, at) =>
          count < backlog / STEPS / 2 ? [`step ${at + 1}: only ${count}`] : [],
        ),
        ...still
          .filter(
            ({ before, now }) =>
              now.step !== before.step || now.plannedMs !== before.plannedMs || now.paused !== before.paused,
          )
          .map(({ before, now }) => `${JSON.stringify(before)} became ${JSON.stringify(now)}`),
      ],
    },
    {
      invariant: 'a ladder goes on from its own step',
      looked: failedAgain.length,
      seen: `${failedAgain.length} failed once more`,
      offenders: failedAgain
        .filter(({ one, gapMs }) => gapMs < (LADDER[one.step + 1] ?? 0) * 1_000)
        .map(({ one, gapMs }) => `${one.id}: ${Math.round(gapMs)} ms after step ${one.step + 1}`),
    },
    {
      invariant: 'no attempt is earlier than planned',
      looked: firsts.length,
      seen: `planned for after all were back: ${late((ms) => ms > backMs)}; before: ${late((ms) => ms <= backMs)}`,
      offenders: firsts
        .filter(({ at, plannedMs }) => at < plannedMs)
        .map(({ one, at, plannedMs }) => `${one.id}: ${Math.round(plannedMs - at)} ms early`),
    },
    {
      invariant: 'what is paused stays paused',
      looked: stopped.length,
      seen: `${stopped.filter(({ paused }) => paused).length} by their ids, ${stopped.length} with those of a partner`,
      offenders: stopped
        .filter(({ eventId }) => after(eventId).some((at) => at < resumedMs))
        .map(({ id }) => id),
    },
    {
      invariant: `a new event comes within ${NEW_EVENT_MS / 1_000} s meanwhile, 99 of 100, and all within ${EVERY_NEW_EVENT_MS / 1_000} s`,
      looked: news.length,
      seen: spread(news.map(({ ms }) => ms)),
      offenders: news
        .toSorted((a, b) => b.ms - a.ms)
        .filter(({ ms }, nth) => ms > EVERY_NEW_EVENT_MS || (ms > NEW_EVENT_MS && nth >= news.length / 100))
        .map(
          ({ eventId, ms, sinceMs }) =>
            `${eventId}: ${Math.round(ms)} ms, created ${Math.round(sinceMs)} ms after the workers were ready`,
        ),
    },
  ];
}

function spread(all: readonly number[]): string {
  const sorted = all.toSorted((a, b) => a - b);
  const at = (share: number) =>
    `${((sorted[Math.floor((sorted.length - 1) * share)] ?? 0) / 1_000).toFixed(1)} s`;
  return `${all.length}, ${at(0.5)} late in the middle, p99 ${at(0.99)}, most ${at(1)}`;
}
