export type AttemptWatch = ReturnType<typeof createAttemptWatch>;

/** Lets requests of this process wait for messages about their notifications (channel `attempts`). */
export function createAttemptWatch() {
  const waiting = new Map<string, (news: string) => void>();
  return {
    /** Listens for one notification. Call it before the commit, as a message may come right after it. */
    subscribe(notificationId: string) {
      let hasNews = false;
      let delayed = false;
      let wake: () => void = () => undefined;
      waiting.set(notificationId, (news) => {
        hasNews = true;
        delayed = news === 'delayed';
        wake();
      });
      return {
        /** Resolves at the next message, or after `ms` milliseconds. A message since the last call counts. */
        next: (ms: number) =>
          new Promise<void>((resolve) => {
            const timer = setTimeout(resolve, hasNews ? 0 : ms);
            hasNews = false;
            wake = () => (clearTimeout(timer), resolve());
          }),
        /** Whether the first attempt cannot begin now, because Temporal is away. */
        delayed: () => delayed,
        end: () => void waiting.delete(notificationId),
      };
    },
    /**
     * @param payload `<notification id>` after an attempt, `<notification id>:delayed` when none can
     * begin.
     */
    onMessage(payload: string): void {
      const [notificationId = '', news = ''] = payload.split(':');
      waiting.get(notificationId)?.(news);
    },
    /** Messages may have been lost with the old connection, so every waiting request reads its row. */
    lookAgain: () => waiting.forEach((notify) => notify('look')),
  };
}
