/** A pause that can be ended early. */
export interface Pause {
  /** Resolves after `ms` milliseconds, or when `end` is called meanwhile. */
  wait(ms: number): Promise<void>;
  end(): void;
}

/** For loops that sleep between rounds and can be woken; one `wait` at a time. */
export function createPause(): Pause {
  let end: () => void = () => undefined;
  return {
    wait: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, ms);
        end = () => (clearTimeout(timer), resolve());
      }),
    end: () => end(),
  };
}
