/** Lets a request wait for word of its notification; the word comes from Postgres (channel `attempts`). */
export interface AttemptWatch {
  /** Begins to listen for one notification. Call it before the commit, or its word may come too early. */
  subscribe(notificationId: string): AttemptSubscription;
  /** Word has come: `<notification id>` after an attempt, `<notification id>:delayed` when none can begin. */
  heard(payload: string): void;
  /** The connection was new: word may have been missed, so everybody looks again. */
  lookAgain(): void;
}

interface AttemptSubscription {
  /** Resolves at the next word, or after `ms` milliseconds. Word that came before it was called counts. */
  next(ms: number): Promise<void>;
  /** Whether the dispatcher has said that the first attempt cannot begin for now: Temporal is away. */
  delayed(): boolean;
  end(): void;
}

/** In memory: each process waits for its own requests only. */
export function createAttemptWatch(): AttemptWatch {
  const waiting = new Map<string, (word: string) => void>();
  return {
    subscribe(notificationId) {
      let word = false;
      let delayed = false;
      let wake: () => void = () => undefined;
      waiting.set(notificationId, (what) => {
        word = true;
        delayed = what === 'delayed';
        wake();
      });
      return {
        next: (ms) =>
          new Promise((resolve) => {
            const timer = setTimeout(resolve, word ? 0 : ms);
            word = false;
            wake = () => (clearTimeout(timer), resolve());
          }),
        delayed: () => delayed,
        end: () => void waiting.delete(notificationId),
      };
    },
    heard: (payload) => {
      const [notificationId = '', word = ''] = payload.split(':');
      waiting.get(notificationId)?.(word);
    },
    lookAgain: () => waiting.forEach((tell) => tell('look')),
  };
}
