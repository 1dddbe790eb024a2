import { seconds } from '../domain/delivery-outcome';

/** Where a delivery stands, as the query `progress` answers it. */
export interface DeliveryProgress {
  readonly phase: 'sending' | 'waiting' | 'paused' | 'ended';
  readonly attempts: number;
  /** What the attempts came to, oldest first. */
  readonly log: readonly string[];
  readonly paused: boolean;
}

/** Tells a delivery as people read it: in the Temporal UI's current details and in the query. */
export function createStory(notificationId: string) {
  const log: string[] = [];
  let attempts = 0;
  let phase: DeliveryProgress['phase'] = 'sending';
  let now = 'The first attempt is under way.';
  return {
    attempted(attemptNumber: number, what: string): void {
      attempts = attemptNumber;
      phase = 'sending';
      log.push(`attempt ${attemptNumber} ${what}`);
      now = `Attempt ${attemptNumber} ${what}.`;
    },
    waiting(waitMs: number, why: string): void {
      phase = 'waiting';
      now = `Waiting ${seconds(waitMs)} for attempt ${attempts + 1}: ${why}.`;
    },
    paused(): void {
      phase = 'paused';
      now = 'Paused by an operator.';
    },
    ended(status: string, reason: string | null): void {
      phase = 'ended';
      now = `Ended: ${status}${reason === null ? '' : ` (${reason})`}.`;
    },
    /** What the last attempt came to; null before there was one. */
    lastAttempt: (): string | null => log.at(-1) ?? null,
    progress: (): DeliveryProgress => ({ phase, attempts, log: [...log], paused: false }),
    /** Markdown. */
    text: () => [`**${notificationId}**: ${now}`, '', ...log.map((line) => `- ${line}`)].join('\n'),
  };
}
