import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { listEndpoints } from '../db/endpoints/endpoints';
import { backlog, deliveryFigures } from '../db/figures';
import { listPauses } from '../db/notifications/hold';
import type { Db } from '../db/postgres/connect';
import { listProcesses, readPostgres } from '../db/processes';
import { withTimeout } from '../timing/timing';
import { wholeNumber } from './arguments';
import { examplesText, handle, type Call, type OpsDeps } from './call';
import { toFailure } from './exit-codes';
import { age, facts, jsonText, moment, printable, snakeCased, type Answer } from './output';

const EXAMPLES = `
  ops status              what is wrong, first; exit code 1 when something is
  ops status --watch      the same every 5 seconds, until Ctrl-C`;

/** Longest wait for Postgres and for Temporal, in milliseconds: an operator waits for the answer. */
const ANSWERS_WITHIN_MS = 3_000;
/** As the alerts have it (deploy/prometheus/alerts.yml): BacklogOld, DeliveriesPaused, BackupOld. */
const BACKLOG_OLD_MS = 300_000;
const PAUSED_LONG_MS = 86_400_000;
const BACKUP_OLD_MS = 26 * 3_600_000;
/** As PartnerFailing has it: a single failure is what the retry ladder is for. */
const FAILING_LONG_MS = 3_600_000;
const WATCH_SECONDS = 5;
const CLEAR = '\u001B[2J\u001B[H';

export function addStatusCommand(program: Command, deps: OpsDeps): void {
  const status = program
    .command('status')
    .description(
      'Is it well? Processes, Temporal, Postgres, backlog, endpoints, pauses, backup. Exit code 1 when not.',
    )
    .option('--watch [seconds]', 'again every so many seconds, 5 by default', wholeNumber(1, 3_600))
    .addHelpText('after', examplesText(EXAMPLES));
  handle<{ watch?: number | true }>(status, deps, async (call) => {
    const { watch } = call.options;
    if (watch === undefined) return statusNow(call);
    const interrupted = deps.interruptible();
    for (;;) {
      const answer = await statusNow(call);
      if (interrupted.aborted) return answer;
      deps.out(call.options.json ? `${jsonText(answer.json)}\n` : `${CLEAR}${String(answer.text)}\n`);
      await sleep((watch === true ? WATCH_SECONDS : watch) * 1_000, undefined, { signal: interrupted }).catch(
        () => undefined,
      );
    }
  });
}

async function statusNow({ db, deps }: Call): Promise<Answer> {
  const [stored, temporal] = await Promise.all([storedState(db), temporalState(deps)]);
  const at = deps.now();
  const problems = [
    ...('unreachable' in stored ? [stored.unreachable] : storedProblems(stored, at, deps.embedded())),
    ...(temporal.problem === null ? [] : [temporal.problem]),
  ];
  const title =
    problems.length === 0
      ? 'Well.'
      : `Not well:\n${problems.map((one) => `  ! ${printable(one)}`).join('\n')}`;
  const lines = facts({
    ...('unreachable' in stored ? { Postgres: 'unreachable' } : storedLines(stored, at, deps.embedded())),
    Temporal:
      'unreachable' in temporal.state
        ? 'unreachable'
        : `reached, current build: ${temporal.state.current ?? 'none'}`,
  });
  return {
    json: {
      well: problems.length === 0,
      at,
      problems,
      ...('unreachable' in stored ? { postgres: stored } : storedView(stored)),
      temporal: temporal.state,
    },
    text: `${title}\n\n${lines}`,
    failure: problems.length === 0 ? undefined : `not well: ${problems.length} found`,
  };
}

type Stored = Awaited<ReturnType<typeof readStored>>;

async function readStored(db: Db) {
  const postgres = await readPostgres(db);
  const found = await listEndpoints(db, { removed: false });
  return {
    postgres,
    processes: await listProcesses(db),
    backlog: await backlog(db),
    deliveries: await deliveryFigures(db),
    endpoints: found.filter(({ state, failingSince }) => state === 'disabled' || failingSince !== null),
    pauses: await listPauses(db),
  };
}

async function storedState(db: Db): Promise<Stored | { readonly unreachable: string }> {
  try {
    return await withTimeout(readStored(db), ANSWERS_WITHIN_MS, 'Postgres');
  } catch (error) {
    return { unreachable: toFailure(error).message };
  }
}

async function temporalState({ temporal }: OpsDeps) {
  try {
    const orders = await temporal();
    const { current } = await orders.describeDeployment(ANSWERS_WITHIN_MS);
    return { state: { current }, problem: await orders.whatIsMissing(ANSWERS_WITHIN_MS) };
  } catch (error) {
    const { message } = toFailure(error);
    return { state: { unreachable: message }, problem: message };
  }
}

const nameOf = ({ kind, host, build }: Stored['processes'][number]) =>
  `${kind === 'api' ? 'API process' : 'worker'} ${host}${build === null ? '' : ` (${build})`}`;
const endpointName = ({ partnerId, environment }: Stored['endpoints'][number]) =>
  `${partnerId} ${environment}`;

/** What somebody has to look at; the rest is in the lines. */
function storedProblems(
  { postgres, processes, backlog, deliveries, endpoints }: Stored,
  at: Date,
  embedded: boolean,
): string[] {
  const long = (since: Date | null, ms: number) => since !== null && at.getTime() - since.getTime() > ms;
  const running = processes.filter(({ lost }) => !lost);
  const kinds = [
    ['api', 'API: no process runs, or none reaches Postgres'],
    ['worker', 'Workers: none runs, or none reaches Postgres: nothing is sent'],
  ] as const;
  return [
    ...kinds.flatMap(([kind, text]) => (running.some((one) => one.kind === kind) ? [] : [text])),
    ...processes.flatMap((one) =>
      one.lost
        ? [`${nameOf(one)} was last seen ${age(one.seenAt, at)} ago`]
        : one.withoutTemporal
          ? [`${nameOf(one)} does not reach Temporal`]
          : [],
    ),
    ...(postgres.role === 'standby' ? ['Postgres: this is a standby, and no leader is known'] : []),
    ...(postgres.synchronous && postgres.standbys === 0 ? ['Postgres: its standby is away'] : []),
    ...(backlog.oldestMs > BACKLOG_OLD_MS
      ? [
          `Backlog: the oldest notification waits for ${age(new Date(at.getTime() - backlog.oldestMs), at)} to be started`,
        ]
      : []),
    ...endpoints.flatMap((one) =>
      one.state === 'disabled'
        ? one.disabledReason === 'operator'
          ? []
          : [
              `Endpoint of ${endpointName(one)} was disabled (${one.disabledReason}): its notifications are held`,
            ]
        : long(one.failingSince, FAILING_LONG_MS)
          ? [
              `Endpoint of ${endpointName(one)} has failed for ${one.failingSince === null ? '' : age(one.failingSince, at)}`,
            ]
          : [],
    ),
    ...(deliveries.oldestPausedMs > PAUSED_LONG_MS ? ['Paused: for more than a day'] : []),
    ...(!embedded &&
    (long(postgres.lastBackupAt, BACKUP_OLD_MS) || (postgres.lastBackupAt === null && postgres.inUse))
      ? ['Backup: none in the last 26 hours']
      : []),
  ];
}

function storedLines(
  { postgres, processes, backlog, deliveries, endpoints, pauses }: Stored,
  at: Date,
  embedded: boolean,
) {
  const { queued, started, held } = deliveries.undelivered;
  const oldest = (ms: number) => `oldest ${age(new Date(at.getTime() - ms), at)}`;
  const single = deliveries.oldestPausedMs;
  return {
    ...Object.fromEntries(
      processes.map((one) => [
        `${one.kind === 'api' ? 'API' : 'Worker'} ${processes.filter(({ kind }) => kind === one.kind).indexOf(one) + 1}`,
        `${nameOf(one)}, up ${age(one.startedAt, at)}, seen ${age(one.seenAt, at)} ago`,
      ]),
    ),
    Postgres: `${postgres.role}, ${postgres.standbys} standbys${postgres.synchronous ? ', synchronous' : ''}`,
    Backlog: `${backlog.pending} wait for their first attempt${backlog.oldestMs === 0 ? '' : ` (${oldest(backlog.oldestMs)})`}, ${backlog.capped} of them for a slot of their endpoint`,
    Deliveries: `${queued} queued, ${started} started, ${held} held`,
    Endpoints:
      endpoints.length === 0
        ? 'none fails or is disabled'
        : endpoints
            .map((one) =>
              one.state === 'disabled'
                ? `${endpointName(one)} disabled (${one.disabledReason})`
                : `${endpointName(one)} fails for ${one.failingSince === null ? '' : age(one.failingSince, at)}`,
            )
            .join('; '),
    Paused:
      pauses.length > 0
        ? pauses
            .map(
              (one) => `${one.partnerId} ${one.environment} since ${moment(one.pausedAt)} by ${one.pausedBy}`,
            )
            .join('; ')
        : `no partner${single === 0 ? '' : `; single deliveries (${oldest(single)})`}`,
    'Last backup':
      postgres.lastBackupAt === null
        ? `none${embedded ? ': the embedded stack makes none' : ''}`
        : `${age(postgres.lastBackupAt, at)} ago`,
  };
}

const storedView = ({ postgres, processes, backlog, deliveries, endpoints, pauses }: Stored) => {
  const { lastBackupAt, inUse: _, ...server } = postgres;
  return {
    postgres: server,
    processes: processes.map(snakeCased),
    backlog: {
      waiting: backlog.pending,
      oldest_seconds: Math.round(backlog.oldestMs / 1_000),
      capped: backlog.capped,
      ...deliveries.undelivered,
    },
    endpoints: endpoints.map(({ endpointId, partnerId, environment, state, disabledReason, failingSince }) =>
      snakeCased({ endpointId, partnerId, environment, state, disabledReason, failingSince }),
    ),
    paused: {
      partners: pauses.map(snakeCased),
      oldest_seconds: Math.round(deliveries.oldestPausedMs / 1_000),
    },
    last_backup_at: lastBackupAt,
  };
};
