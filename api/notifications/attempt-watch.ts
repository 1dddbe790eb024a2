/** Lets a request wait for word of its notification; the word comes from Postgres (channel `attempts`). */
export interface AttemptWatch {
  /** Begins to listen for one notification. Call it before the commit, or its word may come too early. */
  subscribe(notificationId: string): AttemptSubscription;
  /** Word of an attempt has come; the payload is `<notification id>:<attempt>`. */
  heard(payload: string): void;
  /** The connection was new: word may have been missed, so everybody looks again. */
  lookAgain(): void;
}

export interface AttemptSubscription {
  /** Resolves at the next word, or after `ms` milliseconds. Word that came before it was called counts. */
  next(ms: number): Promise<void>;
  end(): void;
}

/** In memory: each process waits for its own requests only. */
export function createAttemptWatch(): AttemptWatch {
  const waiting = new Map<string, () => void>();
  return {
    subscribe(notificationId) {
      let word = false;
      let wake: () => void = () => undefined;
      waiting.set(notificationId, () => {
        word = true;
        wake();
      });
      return {
        next: (ms) =>
          new Promise((resolve) => {
            const timer = setTimeout(resolve, word ? 0 : ms);
            word = false;
            wake = () => (clearTimeout(timer), resolve());
          }),
        end: () => void waiting.delete(notificationId),
      };
    },
    heard: (payload) => waiting.get(payload.slice(0, payload.indexOf(':')))?.(),
    lookAgain: () => waiting.forEach((tell) => tell()),
  };
}
