import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../../clients/typescript/src/client';
import type { NotificationSummary, Quote } from '../../clients/typescript/src/types';
import type { Behaviour, Delivery } from './webhooks';

interface StoryParts {
  readonly client: Client;
  /** For the application that misses its events. */
  readonly takeQuote: () => Promise<Quote>;
  readonly behave: (behaviour: Behaviour) => void;
  readonly deliveries: () => readonly Delivery[];
  /** Receives all that has happened so far, oldest first. */
  readonly tell: (story: Story) => void;
}

export interface Story {
  readonly lines: readonly string[];
  readonly running: boolean;
}

/** An endpoint that does not answer is given 15 s. */
const FIRST_FAILURE_MS = 60_000;
/** The wait after the first failed attempt is 5 s, after the second a minute. */
const ARRIVAL_MS = 150_000;
/** A key has 100 calls a minute, and the pages ask as well. */
const LOOK_MS = 2_000;

/** "My receiver was down": one story at a time, told line by line. */
export class OutageStory {
  #story: Story = { lines: [], running: false };
  #stopped = false;

  constructor(private readonly parts: StoryParts) {}

  state(): Story {
    return this.#story;
  }

  /** Does nothing while one is being told. */
  begin(): void {
    if (this.#story.running) return;
    this.#set({ lines: [], running: true });
    void this.#tell()
      .catch((error: unknown) =>
        this.#say(`It ended early: ${error instanceof Error ? error.message : String(error)}`),
      )
      .finally(() => {
        this.parts.behave({ mode: 'ok' });
        this.#set({ ...this.#story, running: false });
      });
  }

  stop(): void {
    this.#stopped = true;
  }

  #set(story: Story): void {
    this.#story = story;
    this.parts.tell(story);
  }

  #say(line: string): void {
    this.#set({ ...this.#story, lines: [...this.#story.lines, line] });
  }

  async #tell(): Promise<void> {
    const { client, behave, takeQuote } = this.parts;
    const began = new Date();
    const span = () => ({ created_from: began, created_to: new Date() });
    behave({ mode: 'hang' });
    this.#say('The receiver takes every delivery and never answers.');
    const { service_quote_id } = await takeQuote();
    const simulated = await client.simulateApplication({ service_quote_id, story: 'cancelled' });
    const { credit_application_id: id, events } = simulated;
    this.#say(`Meanwhile ${id} has had ${events.length} events. Each attempt is given 15 seconds.`);
    const list = async () => {
      const items: NotificationSummary[] = [];
      for await (const item of client.listNotifications({ credit_application_id: id })) items.push(item);
      return items;
    };
    const missed = await this.#until(FIRST_FAILURE_MS, async () => {
      const items = await list();
      return items.some(({ last_attempt: last }) => last !== null) ? items : undefined;
    });
    this.#say(`The log says: ${inWords(missed)}.`);

    behave({ mode: 'ok' });
    this.#say(
      'The receiver answers again. Pending and retrying events arrive by themselves; the receiver asks for those that failed.',
    );
    const { matched } = await client.countMissed(span());
    this.#say(`POST /v1/notifications/recover with dry_run counts ${matched}.`);
    await this.#until(ARRIVAL_MS, async () => {
      const statuses = (await list()).map((item) => item.status);
      if (statuses.length === events.length && statuses.every((status) => status === 'delivered'))
        return statuses;
      // Those that are pending or retrying come by themselves.
      if (!statuses.includes('pending') && !statuses.includes('retrying'))
        await this.#recover(() => client.recoverNotifications(span()));
      return undefined;
    });
    const { events: told } = await client.getCreditApplication(id);
    const got = new Set(
      this.parts
        .deliveries()
        .flatMap(({ verified, answered, eventId }) => (verified && answered === 200 ? [eventId] : [])),
    );
    const lacking = told.filter((event) => !got.has(event.event_id));
    this.#say(
      lacking.length === 0
        ? `GET /v1/credit-applications/${id} lists ${told.length} events, and the receiver has accepted each: nothing is missing.`
        : `Of ${told.length} events ${lacking.length} are missing: ${lacking.map(({ sequence }) => sequence).join(', ')}.`,
    );
  }

  async #recover(begin: () => Promise<{ readonly recovery_id: string }>): Promise<void> {
    const { recovery_id: recoveryId } = await begin();
    this.#say(`POST /v1/notifications/recover has begun ${recoveryId}.`);
    const { resent, delivered } = await this.#until(ARRIVAL_MS, async () => {
      const found = await this.parts.client.getRecovery(recoveryId);
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

function inWords(items: readonly NotificationSummary[]): string {
  const counts = new Map<string, number>();
  for (const { status } of items) counts.set(status, (counts.get(status) ?? 0) + 1);
  return [...counts].map(([status, count]) => `${count} ${status}`).join(', ');
}
