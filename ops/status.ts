import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { contradictionsOfDay } from '../db/audit/operator-events';
import { listEndpoints } from '../db/endpoints/endpoints';
import { countWithin, storedFigures, type Counted } from '../db/figures';
import { listPauses } from '../db/notifications/hold';
import type { Db } from '../db/postgres/connect';
import { loginSettings } from '../db/postgres/rights';
import { listProcesses, readPostgres } from '../db/processes';
import { TimeoutError, withTimeout } from '../timing/timing';
import { wholeNumber } from './arguments';
import { examplesText, handle, type Call, type OpsDeps } from './call';
import { toFailure } from './exit-codes';
import {
  age,
  facts,
  jsonText,
  utcText,
  pauseText,
  printable,
  printableLines,
  snakeCased,
  timeText,
  type Answer,
} from './output';

const EXAMPLES = `
  ops status              what is wrong, first; exit code 1 when something is
  ops status --watch      the same every 5 seconds, until Ctrl-C`;

/** Longest wait for what is read of Postgres and of Temporal, in milliseconds: an operator waits for the answer. */
const ANSWERS_WITHIN_MS = 3_000;
/** A Postgres that answers the cheapest question within this time is not away, on a busy machine either. */
const AWAY_AFTER_MS = 6_000;
/** Counts that a worker stored longer ago are not shown. */
const COUNTS_OLD_MS = 120_000;
/** Longest that a statement counts where no worker has. */
const COUNTED_WITHIN_MS = 400;
/** As the alerts have it (deploy/prometheus/alerts.yml): BacklogOld, DeliveriesPaused, BackupOld. */
const BACKLOG_OLD_MS = 300_000;
const PAUSED_LONG_MS = 86_400_000;
const BACKUP_OLD_MS = 26 * 3_600_000;
/** As PartnerFailing has it: a single failure is what the retry ladder is for. */
const FAILING_LONG_MS = 3_600_000;
/** As LenderContradicts has it. */
const CONTRADICTIONS_MOST = 3;
const WATCH_SECONDS = 5;
const CLEAR = '\u001B[2J\u001B[H';

export function addStatusCommand(program: Command, deps: OpsDeps): void {
  const status = program
    .command('status')
    .description(
      'Is it well? Processes, Temporal, Postgres, backlog, endpoints, pauses, lenders, backup. Exit code 1 when not.',
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
      deps.out(
        call.options.json ? `${jsonText(answer.json)}\n` : `${CLEAR}${printableLines(String(answer.text))}\n`,
      );
      await sleep((watch === true ? WATCH_SECONDS : watch) * 1_000, undefined, { signal: interrupted }).catch(
        () => undefined,
      );
    }
  });
}

/** As NoCurrentBuild has it. @param builds those of the running workers, null for one without an id */
function buildProblem(builds: ReadonlySet<string | null>, current: string | null | undefined): string | null {
  if (current === undefined || builds.has(current) || builds.size === 0) return null;
  return current === null
    ? 'No build is current: workers send nothing before `ops deployments set-current`'
    : `Build ${current} is current, and no worker is of it (running: ${[...builds].map((one) => one ?? 'none').join(', ')}): nothing is sent`;
}

async function statusNow({ db, deps }: Call): Promise<Answer> {
  const stored = await storedState(db, deps);
  // Afterwards, because loading Temporal's client keeps this process from everything else: for seconds on a busy machine.
  const temporal = await temporalState(deps);
  const problem = stored.builds && buildProblem(stored.builds, temporal.current);
  const problems = [...stored.problems, ...temporal.problems, ...(problem ? [problem] : [])];
  const well = problems.length === 0;
  const title = well ? 'Well.' : `Not well:\n${problems.map((one) => `  ! ${printable(one)}`).join('\n')}`;
  return {
    json: { well, at: stored.at ?? new Date(), problems, ...stored.view, temporal: temporal.view },
    text: `${title}\n\n${facts({ ...stored.lines, ...temporal.lines })}`,
    failure: well ? undefined : `not well: ${problems.length} found`,
  };
}

type PostgresState = Awaited<ReturnType<typeof readPostgres>>;
type Stored = Awaited<ReturnType<typeof readStored>>;

/** Reads few rows first, then counts. */
async function readStored(db: Db, { now }: OpsDeps, postgres: PostgresState) {
  const settings = await loginSettings(db);
  const processes = await listProcesses(db);
  const pauses = await listPauses(db);
  const endpoints = await listEndpoints(db, { removed: false, troubled: true });
  const contradictions = (await contradictionsOfDay(db)).filter(({ count }) => count > 0);
  const counted = await readCounts(db);
  return { postgres, settings, processes, pauses, endpoints, contradictions, counted, at: await now(db) };
}

/** As a worker has stored them, else counted now; null when that takes too long. */
async function readCounts(db: Db): Promise<(Counted & { readonly ageMs: number }) | null> {
  const stored = await storedFigures(db);
  if (stored !== null && stored.ageMs < COUNTS_OLD_MS) return { ...stored.figures, ageMs: stored.ageMs };
  const counted = await countWithin(db, COUNTED_WITHIN_MS);
  return counted && { ...counted, ageMs: 0 };
}

async function storedState(db: Db, deps: OpsDeps) {
  const postgres = await withTimeout(readPostgres(db), AWAY_AFTER_MS, 'Postgres').catch(toFailure);
  const stored = 'exitCode' in postgres ? postgres : await readWithin(db, deps, postgres);
  if ('exitCode' in stored) {
    const { message: unreachable } = stored;
    const lines = { Postgres: 'unreachable' };
    return { problems: [unreachable], lines, view: { postgres: { unreachable } } };
  }
  if ('slow' in stored) {
    const lines = { Postgres: `${stored.role}, slow` };
    return { problems: [stored.slow], lines, view: { postgres: stored } };
  }
  const [{ at }, embedded] = [stored, deps.embedded()];
  const lines = storedLines(stored, at, embedded);
  const workers = stored.processes.filter(({ kind, lost }) => kind === 'worker' && !lost);
  const builds = new Set(workers.map(({ build }) => build));
  return { problems: storedProblems(stored, at, embedded), lines, view: storedView(stored), builds, at };
}

const readWithin = (db: Db, deps: OpsDeps, postgres: PostgresState) =>
  withTimeout(readStored(db, deps, postgres), ANSWERS_WITHIN_MS, 'Postgres').catch((error: unknown) => {
    if (!(error instanceof TimeoutError)) return toFailure(error);
    const slow = `Postgres answers, but slowly: its figures took more than ${ANSWERS_WITHIN_MS / 1_000} s`;
    return { role: postgres.role, slow };
  });

async function temporalState({ temporal }: OpsDeps) {
  try {
    const orders = await temporal();
    const { current } = await orders.describeDeployment(ANSWERS_WITHIN_MS);
    const missing = await orders.whatIsMissing(ANSWERS_WITHIN_MS);
    const lines = { Temporal: `reached, current build: ${current ?? 'none'}` };
    return { problems: missing === null ? [] : [missing], lines, view: { current }, current };
  } catch (error) {
    const { message: unreachable } = toFailure(error);
    return { problems: [unreachable], lines: { Temporal: 'unreachable' }, view: { unreachable } };
  }
}

const nameOf = ({ kind, host, build }: Stored['processes'][number]) =>
  `${kind === 'api' ? 'API process' : 'worker'} ${host}${build === null ? '' : ` (${build})`}`;
const endpointName = ({ partnerId, environment }: Stored['endpoints'][number]) =>
  `${partnerId} ${environment}`;

/** What somebody has to look at; the rest is in the lines. */
function storedProblems(stored: Stored, at: Date, embedded: boolean): string[] {
  const { postgres, settings, processes, counted, endpoints, contradictions } = stored;
  const waitsMs = counted?.backlog.oldestMs ?? 0;
  const msSince = (since: Date | null) => (since === null ? 0 : at.getTime() - since.getTime());
  const runs = (kind: 'api' | 'worker') => processes.some((one) => one.kind === kind && !one.lost);
  const backupIsOld =
    postgres.lastBackupAt === null ? postgres.inUse : msSince(postgres.lastBackupAt) > BACKUP_OLD_MS;
  type Check = readonly [isWrong: boolean, problem: string];
  const checks: readonly Check[] = [
    [!runs('api'), 'API: no process runs, or none reaches Postgres'],
    [!runs('worker'), 'Workers: none runs, or none reaches Postgres: nothing is sent'],
    ...processes.flatMap((one): Check[] => [
      [one.lost, `${nameOf(one)} was last seen ${age(one.seenAt, at)} ago`],
      [
        !one.lost && one.cutOffSince !== null,
        `${nameOf(one)} cannot reach anybody since ${utcText(one.cutOffSince ?? at)}: its network, its name servers?`,
      ],
      [!one.lost && one.withoutTemporal, `${nameOf(one)} does not reach Temporal`],
      [!one.lost && one.trouble !== null, `${nameOf(one)}: ${one.trouble}`],
    ]),
    [postgres.role === 'standby', 'Postgres: this is a standby, and no leader is known'],
    [
      postgres.role === 'read-only',
      'Postgres: it takes no writes (default_transaction_read_only), as providers set it when a disk is almost full',
    ],
    [postgres.synchronous && postgres.standbys === 0, 'Postgres: its standby is away'],
    ...settings.map(({ login, database, setting }): Check => {
      const where = `${login}${database === null ? '' : ` IN DATABASE ${database}`}`;
      return [true, `Postgres: somebody has set ${setting} for a login: ALTER ROLE ${where} RESET ALL`];
    }),
    [
      waitsMs > BACKLOG_OLD_MS,
      `Backlog: the oldest notification waits for ${timeText(waitsMs)} to be started`,
    ],
    [counted === null, `Backlog: ${NOT_COUNTED}`],
    ...endpoints.map((one): Check => {
      const [name, failingMs] = [`Endpoint of ${endpointName(one)}`, msSince(one.failingSince)];
      const { state, disabledReason: why } = one;
      if (state === 'disabled')
        return [why !== 'operator', `${name} was disabled (${why}): its notifications are held`];
      return [failingMs > FAILING_LONG_MS, `${name} has failed for ${timeText(failingMs)}`];
    }),
    [(counted?.deliveries.oldestPausedMs ?? 0) > PAUSED_LONG_MS, 'Paused: for more than a day'],
    ...contradictions.map(({ lender, environment, count }): Check => [
      environment === 'live' && count > CONTRADICTIONS_MOST,
      `Lender ${lender} contradicted the state of an application ${count} times in 24 h: ops events list --kind lender_contradiction`,
    ]),
    [!embedded && backupIsOld, 'Backup: none in the last 26 hours'],
  ];
  return checks.flatMap(([isWrong, problem]) => (isWrong ? [problem] : []));
}

const NOT_COUNTED = 'not known: no worker has counted lately, and it takes long';

function storedLines(stored: Stored, at: Date, embedded: boolean) {
  const { postgres, processes, counted, endpoints, pauses, contradictions } = stored;
  const oldestPausedMs = counted?.deliveries.oldestPausedMs ?? 0;
  const oldest = (ms: number) => (ms === 0 ? '' : ` (oldest ${timeText(ms)})`);
  const stateText = (one: Stored['endpoints'][number]) =>
    one.state === 'disabled'
      ? `${endpointName(one)} disabled (${one.disabledReason})`
      : `${endpointName(one)} fails for ${age(one.failingSince ?? at, at)}`;
  const single = oldestPausedMs === 0 ? '' : '; single deliveries';
  return {
    ...Object.fromEntries(
      processes.map((one) => [
        `${one.kind === 'api' ? 'API' : 'Worker'} ${processes.filter(({ kind }) => kind === one.kind).indexOf(one) + 1}`,
        `${nameOf(one)}, up ${age(one.startedAt, at)}, seen ${age(one.seenAt, at)} ago`,
      ]),
    ),
    Postgres: `${postgres.role}, ${postgres.standbys} standbys${postgres.synchronous ? ', synchronous' : ''}`,
    ...(counted === null ? { Backlog: NOT_COUNTED } : countedLines(counted)),
    Endpoints: endpoints.map(stateText).join('; ') || 'none fails or is disabled',
    Paused:
      pauses.map((one) => `${one.partnerId} ${pauseText(one)}`).join('; ') ||
      `no partner${single}${oldest(oldestPausedMs)}`,
    Lenders:
      contradictions
        .map((one) => `${one.lender} ${one.environment} contradicted a state ${one.count} times in 24 h`)
        .join('; ') || 'none contradicted a state in 24 h',
    'Last backup':
      postgres.lastBackupAt === null
        ? `none${embedded ? ': the embedded stack makes none' : ''}`
        : `${age(postgres.lastBackupAt, at)} ago`,
  };
}

function countedLines({ backlog, deliveries, ageMs }: NonNullable<Stored['counted']>) {
  const { undelivered, toRestart } = deliveries;
  const { queued, started, held } = undelivered;
  const lost = ` (${toRestart} of them wait to be looked for in Temporal, and started again if their workflow is lost)`;
  const oldest = backlog.oldestMs === 0 ? '' : ` (oldest ${timeText(backlog.oldestMs)})`;
  return {
    Backlog: `${backlog.pending} wait for their first attempt${oldest}, ${backlog.capped} of them for a slot of their endpoint`,
    Deliveries: `${queued} queued, ${started} started${toRestart > 0 ? lost : ''}, ${held} held, counted ${timeText(ageMs)} ago`,
  };
}

const storedView = (stored: Stored) => {
  const { postgres, settings, processes, counted, endpoints, pauses, contradictions } = stored;
  const { lastBackupAt, inUse: _, ...server } = postgres;
  const seconds = (ms: number) => Math.round(ms / 1_000);
  return {
    postgres: { ...server, login_settings: settings },
    processes: processes.map(snakeCased),
    backlog: counted && {
      waiting: counted.backlog.pending,
      oldest_seconds: seconds(counted.backlog.oldestMs),
      capped: counted.backlog.capped,
      ...counted.deliveries.undelivered,
      to_restart: counted.deliveries.toRestart,
      counted_seconds_ago: seconds(counted.ageMs),
    },
    endpoints: endpoints.map(({ endpointId, partnerId, environment, state, disabledReason, failingSince }) =>
      snakeCased({ endpointId, partnerId, environment, state, disabledReason, failingSince }),
    ),
    paused: {
      partners: pauses.map(snakeCased),
      oldest_seconds: counted && seconds(counted.deliveries.oldestPausedMs),
    },
    /** Of the last 24 hours. */
    lender_contradictions: contradictions,
    last_backup_at: lastBackupAt,
  };
};
