import { setTimeout as sleep } from 'node:timers/promises';
import type { NotificationItem } from '../../contracts/notifications';
import type { RecoveryBody } from '../../contracts/notification-recovery';
import type { PartnerApplicationBody } from '../../contracts/webhook-event';
import { askPartnerApi, dataOf, type PartnerSettings } from '../calls';
import type { Behaviour, Delivery } from './deliveries';

export type { NotificationItem };
type Recovery = RecoveryBody['data'];
type Application = PartnerApplicationBody['data'];

/** Every method throws with the API's code and message when it is refused, and Unreachable. */
export function openPartnerLog(settings: PartnerSettings) {
  const get = <T>(path: string) => dataOf<T>(askPartnerApi(settings, 'GET', path));
  const post = <T>(path: string, body?: unknown) => dataOf<T>(askPartnerApi(settings, 'POST', path, body));
  const recover = <T>(since: Date, until: Date, dryRun: boolean) =>
    post<T>('/v1/notifications/recover', {
      created_from: since.toISOString(),
      created_to: until.toISOString(),
      dry_run: dryRun,
    });
  return {
    async list(applicationId?: string): Promise<readonly NotificationItem[]> {
      const filter = applicationId === undefined ? '' : `?credit_application_id=${applicationId}`;
      return (await get<{ notifications: NotificationItem[] }>(`/v1/notifications${filter}`)).notifications;
    },
    async resend(notificationId: string): Promise<void> {
      await post(`/v1/notifications/${encodeURIComponent(notificationId)}/resend`);
    },
    countMissed: async (since: Date, until: Date) =>
      (await recover<{ matched: number }>(since, until, true)).matched,
    recover: async (since: Date, until: Date) =>
      (await recover<{ recovery_id: string }>(since, until, false)).recovery_id,
    recovery: (recoveryId: string) => get<Recovery>(`/v1/notifications/recoveries/${recoveryId}`),
    application: (applicationId: string) => get<Application>(`/v1/credit-applications/${applicationId}`),
  };
}

/** What the story needs of its surroundings. */
export interface StoryParts {
  readonly log: ReturnType<typeof openPartnerLog>;
  /** Opens an application and has its lender tell some events. @returns its id and how many events that makes. */
  readonly moveApplication: () => Promise<{ readonly applicationId: string; readonly events: number }>;
  readonly behave: (behaviour: Behaviour) => void;
  readonly deliveries: () => readonly Delivery[];
  readonly now: () => Date;
}

export interface Story {
  /** What has happened so far, oldest first. */
  readonly lines: readonly string[];
  readonly running: boolean;
}

/** An endpoint that does not answer is given 15 s. */
const FIRST_FAILURE_MS = 60_000;
/** The wait after the first failed attempt is 5 s, after the second a minute. */
const ARRIVAL_MS = 150_000;
/** A key has 100 calls a minute, and the page asks as well. */
const LOOK_MS = 2_000;

/** "My receiver was down": one story at a time, told line by line. */
export class OutageStory {
  #lines: string[] = [];
  #running = false;
  #stopped = false;

  constructor(private readonly parts: StoryParts) {}

  state(): Story {
    return { lines: this.#lines, running: this.#running };
  }

  /** Does nothing while one is being told. */
  begin(): void {
    if (this.#running) return;
    this.#running = true;
    this.#lines = [];
    void this.#tell()
      .catch((error: unknown) =>
        this.#say(`It ended early: ${error instanceof Error ? error.message : String(error)}`),
      )
      .finally(() => {
        this.parts.behave({ mode: 'ok' });
        this.#running = false;
      });
  }

  stop(): void {
    this.#stopped = true;
  }

  #say(line: string): void {
    this.#lines = [...this.#lines, line];
  }

  async #tell(): Promise<void> {
    const { log, now, behave } = this.parts;
    const since = now();
    behave({ mode: 'hang' });
    this.#say('The receiver takes every delivery and never answers.');
    const { applicationId, events } = await this.parts.moveApplication();
    this.#say(`Meanwhile ${applicationId} has had ${events} events. Each attempt is given 15 seconds.`);
    const missed = await this.#until(FIRST_FAILURE_MS, async () => {
      const items = await log.list(applicationId);
      return items.some(({ last_attempt: last }) => last !== null) ? items : undefined;
    });
    this.#say(`The log says: ${inWords(missed)}.`);

    behave({ mode: 'ok' });
    this.#say(
      'The receiver answers again. Pending and retrying events arrive by themselves; the receiver asks for those that failed.',
    );
    this.#say(`POST /v1/notifications/recover with dry_run counts ${await log.countMissed(since, now())}.`);
    await this.#until(ARRIVAL_MS, async () => {
      const items = await log.list(applicationId);
      const statuses = items.map(({ status }) => status);
      if (items.length === events && statuses.every((status) => status === 'delivered')) return items;
      // Those that are pending or retrying come by themselves.
      if (!statuses.includes('pending') && !statuses.includes('retrying')) await this.#recover(since);
      return undefined;
    });
    const { events: told } = await log.application(applicationId);
    const got = new Set(
      this.parts
        .deliveries()
        .flatMap(({ verified, answered, eventId }) => (verified && answered === 200 ? [eventId] : [])),
    );
    const lacking = told.filter(({ event_id: id }) => !got.has(id));
    this.#say(
      lacking.length === 0
        ? `GET /v1/credit-applications/${applicationId} lists ${told.length} events, and the receiver has accepted each: nothing is missing.`
        : `Of ${told.length} events ${lacking.length} are missing: ${lacking.map(({ sequence }) => sequence).join(', ')}.`,
    );
  }

  async #recover(since: Date): Promise<void> {
    const { log, now } = this.parts;
    const recoveryId = await log.recover(since, now());
    this.#say(`POST /v1/notifications/recover has begun ${recoveryId}.`);
    const { resent, delivered } = await this.#until(ARRIVAL_MS, async () => {
      const found = await log.recovery(recoveryId);
      return ['finished', 'stopped'].includes(found.status) ? found : undefined;
    });
    this.#say(`It has ended: ${resent} sent again, ${delivered} delivered.`);
  }

  /** @throws when it takes longer. */
  async #until<T>(mostMs: number, look: () => Promise<T | undefined>): Promise<T> {
    const end = performance.now() + mostMs;
    for (;;) {
      if (this.#stopped) throw new Error('the stack is stopping');
      const found = await look();
      if (found !== undefined) return found;
      if (performance.now() > end) throw new Error(`nothing more has happened for ${mostMs / 1_000} s`);
      await sleep(LOOK_MS);
    }
  }
}

function inWords(items: readonly NotificationItem[]): string {
  const counts = new Map<string, number>();
  for (const { status } of items) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
}
